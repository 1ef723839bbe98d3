"""docs/metrics.md, written from the definitions.

Owns the page's words and tables. Must not know anything that a definition does not say.
"""

from collections.abc import Sequence

from lamina.broker.counters import BOUNDS_NS
from lamina.broker.metrics.definitions import SECTIONS
from lamina.broker.metrics.metric import Metric

INTRODUCTION = """\
# Metrics

Written by `make docs` from `src/lamina/broker/metrics/definitions/`; do not edit.

A broker tells its metrics at `/metrics` of its admin listener, in Prometheus's text format, or in OpenMetrics for a
scraper that asks for it. `packaging/grafana-dashboard.json` shows them,
`packaging/alerts.yml` warns by them. Times are in seconds and sizes in bytes.
Kafka's rates are counters here: `rate(lamina_topic_in_bytes_total[1m])` is its `BytesInPerSec`, and leaving out a label
is a `sum`: `sum(rate(lamina_topic_in_bytes_total[1m]))` is the whole broker.

Labels are names of what exists: topics, partitions, listeners, log directories, APIs and error codes, never what a
client may invent, such as its client id; only groups are named, in a bounded number of series. The series of a topic go
with the topic. Histograms have buckets up to {bounds} seconds.

*in Kafka* is the MBean that means the same.
"""


def page() -> str:
    bounds = ", ".join(f"{bound_ns / 1_000_000_000:g}" for bound_ns in BOUNDS_NS)
    sections = [INTRODUCTION.format(bounds=bounds)]
    sections += [_section(title, metrics) for title, metrics in SECTIONS]
    return "\n".join(sections)


def _section(title: str, metrics: Sequence[Metric]) -> str:
    rows = [
        f"| `{metric.name}` | {metric.kind} | {', '.join(f'`{label}`' for label in metric.labels)} "
        f"| {metric.help_text} | {f'`{metric.kafka}`' if metric.kafka else ''} |"
        for metric in metrics
    ]
    head = ["| metric | kind | labels | says | in Kafka |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([f"## {title}", "", *head, *rows, ""])


if __name__ == "__main__":
    print(page(), end="")
