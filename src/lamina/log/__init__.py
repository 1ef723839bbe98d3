"""Partition logs on disk, in Kafka's own files, bit for bit. Synchronous; every disk operation is in files.py."""
