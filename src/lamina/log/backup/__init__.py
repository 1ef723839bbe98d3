"""Taking a backup of log directories, of a running broker or a stopped one, and bringing it back."""

MANIFEST = "backup.json"
"""The file that makes a directory a backup."""
