"""What every room calls a partition: the name of its topic and its number. Must not know anything else."""

TopicPartition = tuple[str, int]
