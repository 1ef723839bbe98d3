"""Lamina: a Kafka-compatible commit log whose compaction runs on Spark."""

from importlib.metadata import version

__version__ = version("lamina")
