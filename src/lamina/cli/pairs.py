"""``KEY=VALUE`` on the command line, and settings among them, whose values may have units.

Must not know what is set.
"""

from collections.abc import Iterable

import click

from lamina.cli.units import setting_value


def pairs_from(texts: Iterable[str], option: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE", param_hint=option)
        given[name.strip()] = value.strip()
    return given


def settings_pairs_from(texts: Iterable[str], option: str) -> dict[str, str]:
    """Durations and sizes become the plain numbers that Kafka wants."""
    try:
        return {name: setting_value(name, value) for name, value in pairs_from(texts, option).items()}
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from error
