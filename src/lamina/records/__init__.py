"""What is inside a log: record batches and the records in them, as bytes. Pure."""
