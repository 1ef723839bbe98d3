"""Verifying what is on disk: every batch, index, snapshot and checkpoint, read and never written."""
