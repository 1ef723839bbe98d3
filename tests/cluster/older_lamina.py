"""The program ``lamina`` of an older version: ``python older_lamina.py serve ...``.

It is today's code with the table of features that a version before 0.1 would have had. So it registers as that one,
speaks at its levels, and refuses what it does not know.
"""

import lamina
from lamina.image.features import LAMINA_VERSION, SUPPORTED, TRANSACTION_VERSION

OLDER_LEVELS = {TRANSACTION_VERSION: 1}


def main() -> None:
    lamina.__version__ = "0.0.9"
    del SUPPORTED[LAMINA_VERSION]
    SUPPORTED[TRANSACTION_VERSION] = range(OLDER_LEVELS[TRANSACTION_VERSION] + 1)
    # Everything else is imported with this table.
    from lamina.cli import main as lamina_command

    lamina_command()


if __name__ == "__main__":
    main()
