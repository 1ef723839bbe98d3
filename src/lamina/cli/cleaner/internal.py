"""Leaving out the topics that brokers keep for themselves, unless somebody asks for them.

Must not know what the rows say.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import click

from lamina.image.topic import INTERNAL_TOPICS

internal_option = click.option("--internal", is_flag=True, help="Also the internal topics, such as __consumer_offsets.")


def shown_rows(rows: Iterable[dict[str, Any]], topic: str | None, internal: bool) -> Iterator[dict[str, Any]]:
    """A topic that is named is always shown."""
    is_all = internal or topic is not None
    return (row for row in rows if is_all or row["topic"] not in INTERNAL_TOPICS)
