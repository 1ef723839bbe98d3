"""One metric: its name, its kind, its labels, what it means, and what Kafka calls it; and one sample of it.

Owns the shape of both. Must not know which metrics exist, nor where their values come from.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """With Prometheus's words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """``kafka`` is the MBean that means the same, or nearly; empty where Kafka has none."""

    name: str
    kind: Kind
    help_text: str
    labels: tuple[str, ...] = ()
    kafka: str = ""

    @property
    def series_names(self) -> tuple[str, ...]:
        """What its series are called in an expression."""
        if self.kind is Kind.HISTOGRAM:
            return (f"{self.name}_bucket", f"{self.name}_sum", f"{self.name}_count")
        return (self.name,)


class Sample(NamedTuple):
    """One value of a metric, with its labels."""

    labels: tuple[str, ...]
    value: float
    suffix: str = ""
    bound: str | None = None
    """Of a bucket: its upper end."""


Samples = Iterable[Sample]


def counter(name: str, help_text: str, *labels: str, kafka: str = "") -> Metric:
    return Metric(name, Kind.COUNTER, help_text, labels, kafka)


def gauge(name: str, help_text: str, *labels: str, kafka: str = "") -> Metric:
    return Metric(name, Kind.GAUGE, help_text, labels, kafka)


def histogram(name: str, help_text: str, *labels: str, kafka: str = "") -> Metric:
    return Metric(name, Kind.HISTOGRAM, help_text, labels, kafka)
