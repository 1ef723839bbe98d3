import os

# Brokers keep their compiled bytecode, as they do wherever they are installed: without it a start takes twice as long.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
