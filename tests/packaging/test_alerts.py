"""packaging/alerts.yml: it asks for metrics that exist, and Prometheus's own tool finds that every alert fires."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lamina.broker.metrics.definitions import METRICS

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "packaging/alerts.yml"
CASES = Path(__file__).with_name("alerts_test.yml")
PROMTOOL = os.environ.get("PROMTOOL") or shutil.which("promtool")
LABELS = {"job", "instance", *(label for metric in METRICS for label in metric.labels)}


def alerts() -> dict[str, str]:
    """Expressions by name."""
    return dict(re.findall(r"- alert: (\w+)\n +expr: (.+)\n", ALERTS.read_text()))


def test_every_metric_that_is_asked_for_is_on_the_list() -> None:
    known = {name for metric in METRICS for name in metric.series_names}
    assert len(alerts()) == ALERTS.read_text().count("- alert:") > 10
    for expression in alerts().values():
        named = set(re.findall(r"\blamina_\w+", expression))
        assert named
        assert named <= known, named - known


def test_labels_exist() -> None:
    text = ALERTS.read_text()
    named = {label.strip() for found in re.findall(r"by \(([^)]*)\)", text) for label in found.split(",")}
    named |= set(re.findall(r"\$labels\.(\w+)", text))
    assert named <= LABELS


def test_every_alert_has_a_case() -> None:
    assert set(re.findall(r'alertname="(\w+)"', CASES.read_text())) == alerts().keys()


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool here: `make alerts` fetches it")
def test_prometheus_understands_the_rules_and_each_alert_fires_when_it_should(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    cases = tmp_path / CASES.name
    cases.write_text(CASES.read_text().replace("ALERTS]", f"{ALERTS}]"))
    for command in (["check", "rules", str(ALERTS)], ["test", "rules", str(cases)]):
        done = subprocess.run([PROMTOOL, *command], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
