"""The cleaner of compacted topics: which logs are cleaned, when, and what became of it."""
