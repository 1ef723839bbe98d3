"""Moving partitions from one log directory of this broker to another."""
