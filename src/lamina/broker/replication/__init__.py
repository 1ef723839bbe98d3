"""Following the leaders of this broker's partitions, and the way to the other brokers of the cluster."""
