"""The shells around the coordinators: shards on partitions of internal topics, groups, transactions, producer ids."""
