"""The partitions that this broker serves: roles, high watermarks, disk space, who waits for them."""
