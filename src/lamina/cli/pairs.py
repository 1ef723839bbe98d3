"""``KEY=VALUE`` on the command line.

Must not know what is set.
"""

from collections.abc import Iterable

import click


def pairs_from(texts: Iterable[str], option: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE", param_hint=option)
        given[name.strip()] = value.strip()
    return given
