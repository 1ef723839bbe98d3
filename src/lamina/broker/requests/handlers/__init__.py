"""One small module for each API family: a message in, a message out."""
