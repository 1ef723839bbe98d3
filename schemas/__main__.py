"""Writes the table to standard output."""

import sys

from schemas.table import source

sys.stdout.write(source())
