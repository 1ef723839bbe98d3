"""Lamina: a Kafka-compatible commit log whose compaction runs on Spark."""

__version__ = "0.1.0"
