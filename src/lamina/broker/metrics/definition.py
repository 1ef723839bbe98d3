"""One metric: its name, its kind, its labels, what it says, and what Kafka calls it.

Owns the shape of a definition. Must not know which metrics exist, nor where their values come from.
"""

from dataclasses import dataclass
from enum import StrEnum


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


def counter(name: str, help_text: str, *labels: str, kafka: str = "") -> Metric:
    return Metric(name, Kind.COUNTER, help_text, labels, kafka)


def gauge(name: str, help_text: str, *labels: str, kafka: str = "") -> Metric:
    return Metric(name, Kind.GAUGE, help_text, labels, kafka)


def histogram(name: str, help_text: str, *labels: str, kafka: str = "") -> Metric:
    return Metric(name, Kind.HISTOGRAM, help_text, labels, kafka)
