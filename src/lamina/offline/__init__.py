"""What works on data directories without a broker: backup, restore, adoption of foreign logs, compaction."""
