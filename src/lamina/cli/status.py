"""Exit statuses; docs/cli.md tells them to the user."""

FINE = 0
SOMETHING_WRONG = 1
BAD_INPUT = 2
UNREACHABLE = 3
OUR_FAULT = 70
INTERRUPTED = 130
BROKEN_PIPE = 141
