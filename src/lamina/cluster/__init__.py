"""A cluster on this machine: a ZooKeeper and brokers, each a process of its own, with all their files in one place."""
