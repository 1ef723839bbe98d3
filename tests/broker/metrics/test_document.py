from pathlib import Path

from lamina.broker.metrics.definitions import METRICS
from lamina.broker.metrics.document import page
from lamina.broker.metrics.metric import Kind

METRICS_MD = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_page_in_docs_is_what_the_definitions_say() -> None:
    assert METRICS_MD.read_text(encoding="utf-8") == page(), "run make docs"


def test_every_metric_has_a_row_of_its_own() -> None:
    rows = [line.split("`")[1] for line in page().splitlines() if line.startswith("| `")]
    assert rows == [metric.name for metric in METRICS]
    assert len(set(rows)) == len(rows)


def test_names_say_what_prometheus_expects_of_them() -> None:
    for metric in METRICS:
        assert metric.name.startswith("lamina_")
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER), metric.name
        if metric.kind is Kind.HISTOGRAM:
            assert metric.name.endswith("_seconds"), metric.name
        assert metric.help_text.endswith("."), metric.name
        assert "_ms" not in metric.name
