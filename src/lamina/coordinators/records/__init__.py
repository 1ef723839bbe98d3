"""The records of the internal topics: what they say (dataclasses) and their bytes, as Kafka 4.1 writes them."""
