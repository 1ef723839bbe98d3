"""What a broker counts, and how it is told."""
