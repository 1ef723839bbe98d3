"""Certificates, keys and TLS contexts, from the files or the values that settings name.

Owns what reads key material, for listeners and for clients alike. A secret is in no message and in no ``repr``.
Loaded by name, and only where something speaks TLS: it needs the package cryptography. Must not know listeners or
connections.
"""
