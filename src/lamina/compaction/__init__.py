"""Deciding what compaction does: which logs, which segments together, which batches and records stay. Pure."""
