"""How brokers are shown: cells that fit, and a sentence for each trouble."""

from dataclasses import replace
from pathlib import Path

import pytest

from lamina.cli.cluster.rows import HEADINGS, cells, troubles, zookeeper_cells
from lamina.cli.cluster.watching import StateLines, render
from lamina.cluster.broker_figures import BrokerFigures, BrokerView, Rates, rates_between
from lamina.cluster.broker_status import BrokerState, BrokerStatus, ZooKeeperStatus
from lamina.cluster.local_cluster import LocalCluster

FIGURES = BrokerFigures(10.0, True, 4000, 17, 0, 0, 123_456, False, 1_000, 2_000)
VIEW = BrokerView(
    BrokerStatus(1, "127.0.0.1:39092", BrokerState.RUNNING, 4_194_304), FIGURES, Rates(999_949_999.0, 999_949_999.0)
)


ZOOKEEPER = ZooKeeperStatus(29181, BrokerState.RUNNING, 4_194_303)
DEAD_ZOOKEEPER = ZooKeeperStatus(29181, BrokerState.DEAD)


def test_a_broker_with_large_figures_fits_a_terminal_of_80_columns(tmp_path: Path) -> None:
    from rich.console import Console

    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115  it is closed with the console
    silent = replace(VIEW, figures=None, rates=None)
    console.print(render(LocalCluster(tmp_path), ZOOKEEPER, [VIEW, silent]))
    console.file.close()
    table = [line.rstrip() for line in console.export_text().splitlines()]
    assert table[1].split() == ["id", "port", "state", "role", "leads", "replicated", "lag", "in/s", "out/s"]
    assert table[3].split() == ["29181", "running", "zookeeper"]
    assert all(text in table[4] for text in ("controller", "39092", "4000", "17", "123456", "999.9 MB"))
    assert "…" not in "".join(table)
    assert "no answer" in table[5]


def test_what_is_not_known_is_left_empty() -> None:
    stopped = BrokerView(BrokerStatus(2, "127.0.0.1:9093", BrokerState.STOPPED))
    assert cells(stopped) == ("2", "9093", "stopped", *[""] * (len(HEADINGS) - 3))
    assert len(zookeeper_cells(DEAD_ZOOKEEPER)) == len(HEADINGS)


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (
            BrokerView(BrokerStatus(2, "", BrokerState.DEAD)),
            "broker 2 is dead: `lamina cluster restart 2 --data-dir {directory}` starts it",
        ),
        (
            BrokerView(BrokerStatus(2, "", BrokerState.LEFT)),
            "broker 2 was taken out of the cluster: `lamina cluster remove-broker 2 --data-dir {directory}` forgets it",
        ),
        (replace(VIEW, figures=None), "broker 1 (process 4194304) runs and does not answer"),
        (replace(VIEW, figures=replace(FIGURES, is_session_lost=True)), "broker 1 cannot reach ZooKeeper"),
        (
            replace(VIEW, figures=replace(FIGURES, low_log_dirs=("/logs",))),
            "broker 1 writes nothing to /logs: its disk is nearly full",
        ),
        (replace(VIEW, figures=replace(FIGURES, offline_partitions=2)), "2 partitions without a leader"),
        (replace(VIEW, figures=replace(FIGURES, under_min_isr_partitions=1)), "1 partition below min.insync.replicas"),
    ],
)
def test_a_trouble_is_a_sentence(view: BrokerView, said: str, tmp_path: Path) -> None:
    first, told = troubles(LocalCluster(tmp_path), DEAD_ZOOKEEPER, [view])
    assert first.startswith(f"ZooKeeper is dead: `lamina cluster restart zookeeper --data-dir {tmp_path}` starts it")
    assert told.startswith(said.format(directory=tmp_path))


def test_a_broker_that_is_stopped_or_starts_is_no_trouble(tmp_path: Path) -> None:
    views = [BrokerView(BrokerStatus(2, "", state)) for state in (BrokerState.STOPPED, BrokerState.STARTING)]
    assert list(troubles(LocalCluster(tmp_path), ZOOKEEPER, views)) == []


def test_a_zookeeper_that_hangs_is_a_trouble(tmp_path: Path) -> None:
    silent = replace(ZOOKEEPER, state=BrokerState.NO_ANSWER)
    [told] = troubles(LocalCluster(tmp_path), silent, [VIEW])
    assert told.startswith("ZooKeeper (process 4194303) runs and does not answer; its log is ")


def test_a_line_for_each_change_and_none_for_what_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dead = replace(VIEW, status=replace(VIEW.status, state=BrokerState.DEAD), figures=None)
    with StateLines(LocalCluster(tmp_path), as_json=False) as lines:
        for view in (VIEW, VIEW, dead, dead, VIEW):
            lines.show(ZOOKEEPER, [view])
        lines.show(DEAD_ZOOKEEPER, [VIEW])
    assert capsys.readouterr().out.splitlines() == [
        "broker 1 (127.0.0.1:39092): dead",
        "broker 1 (127.0.0.1:39092): running",
        "ZooKeeper (port 29181): dead",
    ]


def test_rates_are_between_two_looks_and_never_negative() -> None:
    later = replace(FIGURES, at_seconds=12.0, in_bytes=5_000, out_bytes=0)
    assert rates_between(FIGURES, later) == Rates(2_000.0, 0.0)
    assert rates_between(None, later) is rates_between(FIGURES, None) is rates_between(FIGURES, FIGURES) is None
