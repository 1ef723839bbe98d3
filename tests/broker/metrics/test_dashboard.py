"""The Grafana dashboard asks for metrics that exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lamina.broker.metrics.definitions import METRICS
from lamina.broker.metrics.metric import Kind

DASHBOARD = Path(__file__).parents[3] / "packaging" / "grafana-dashboard.json"
ROWS = ["Health", "Cluster", "Traffic", "Requests and latency", "Log", "Cleaner", "Machine"]
LABELS = {"le", *(label for metric in METRICS for label in metric.labels)}


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return found


def expressions() -> Iterator[str]:
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]


def test_every_metric_in_an_expression_is_on_the_list() -> None:
    known = {name for metric in METRICS for name in metric.series_names}
    named = {name for expression in expressions() for name in re.findall(r"\blamina_\w+", expression)}
    assert named
    assert named <= known, named - known


def test_counters_are_only_asked_for_their_rates() -> None:
    counting = {name for one in METRICS if one.kind is not Kind.GAUGE for name in one.series_names}
    for expression in expressions():
        for name in re.findall(r"\blamina_\w+", expression):
            if name in counting:
                assert re.search(rf"(rate|increase)\({name}\b", expression), expression


def test_labels_in_expressions_exist() -> None:
    for expression in expressions():
        for labels in re.findall(r"by \(([^)]*)\)", expression):
            assert {label.strip() for label in labels.split(",")} <= LABELS | {"instance"}, expression


def test_panels_have_ids_of_their_own_and_places_that_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    ids = [panel["id"] for panel in panels]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not taken & cells, panel["title"]
        taken |= cells


def test_its_rows_are_those_that_an_operator_looks_for() -> None:
    assert [panel["title"] for panel in dashboard()["panels"] if panel["type"] == "row"] == ROWS


def test_every_panel_that_shows_something_says_what() -> None:
    for panel in dashboard()["panels"]:
        assert panel["title"]
        if panel["type"] != "row":
            assert panel["targets"], panel["title"]
            assert panel["description"], panel["title"]
