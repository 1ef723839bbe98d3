"""What a person may set: Kafka's names and meanings, how they are read, and which value wins."""
