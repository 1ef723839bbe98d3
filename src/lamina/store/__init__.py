"""The cluster store: what must outlive every broker. A small interface, and a file that serves it on one node."""
