"""Property tests draw the same examples on every run, and a slow machine does not fail them."""

from hypothesis import settings

settings.register_profile("lamina", derandomize=True, deadline=None)
settings.load_profile("lamina")
