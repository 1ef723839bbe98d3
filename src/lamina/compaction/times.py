"""Ends of the number lines that the rules of compaction count on."""

NEVER_MS = 2**63 - 1
"""A time that does not come: the delete horizon of a batch that has none."""

OFFSET_AFTER_ALL = 2**63 - 1
