"""Sockets: listeners, who may connect, and one client's bytes in and out."""
