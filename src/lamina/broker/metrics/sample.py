"""One value of a metric, with its labels.

Must not know where it comes from.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Sample(NamedTuple):
    labels: tuple[str, ...]
    value: float
    suffix: str = ""
    bound: str | None = None
    """Of a bucket: its upper end."""


Samples = Iterable[Sample]
