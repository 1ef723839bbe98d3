"""The broker: one process, one event loop, and no lock. What waits for the disk goes to threads."""
