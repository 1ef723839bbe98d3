"""``python -m lamina``: the same as the ``lamina`` command."""

from lamina.cli import main

main()
