"""What is shown of a cluster while it runs: a table that stays in its place, or one line for each change.

Must not ask brokers anything.
"""

from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import click

from lamina.cli.cluster.rows import (
    HEADINGS,
    RATE_HEADINGS,
    broker_row,
    cells,
    cluster_row,
    rate_cells,
    state_of,
    troubles,
    zookeeper_cells,
)
from lamina.cli.printing.tables import Row, print_json
from lamina.cluster.broker_figures import BrokerView
from lamina.cluster.broker_status import BrokerState, ZooKeeperStatus
from lamina.cluster.local_cluster import LocalCluster

if TYPE_CHECKING:
    from rich.console import RenderableType

_NUMBERS_FROM = HEADINGS.index("leads")


class LiveTable:
    """On a terminal."""

    def __init__(self, cluster: LocalCluster) -> None:
        from rich.live import Live

        self._cluster = cluster
        self._live = Live(auto_refresh=False)

    def __enter__(self) -> "LiveTable":
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._live.stop()

    def show(self, zookeeper: ZooKeeperStatus, views: Sequence[BrokerView]) -> None:
        self._live.update(render(self._cluster, zookeeper, views), refresh=True)


def render(cluster: LocalCluster, zookeeper: ZooKeeperStatus, views: Sequence[BrokerView]) -> "RenderableType":
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for number, heading in enumerate((*HEADINGS, *RATE_HEADINGS)):
        justify: Literal["left", "right"] = "right" if number >= _NUMBERS_FROM else "left"
        table.add_column(heading.replace("-", "-\n"), justify=justify, no_wrap=True)
    table.add_row(*zookeeper_cells(zookeeper), style=_style(zookeeper.state))
    for view in views:
        table.add_row(*cells(view), *rate_cells(view), style=_style(state_of(view)))
    return Group(table, *(Text(trouble, style="yellow") for trouble in troubles(cluster, zookeeper, views)))


def _style(state: BrokerState) -> str | None:
    return None if state is BrokerState.RUNNING else "yellow"


class StateLines:
    """Elsewhere: one line for each process whose state has changed, as text or as JSON."""

    def __init__(self, cluster: LocalCluster, *, as_json: bool) -> None:
        self._cluster = cluster
        self._as_json = as_json
        self._states: dict[int, BrokerState] = {}
        self._zookeeper = BrokerState.RUNNING

    def __enter__(self) -> "StateLines":
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        pass

    def show(self, zookeeper: ZooKeeperStatus, views: Sequence[BrokerView]) -> None:
        if zookeeper.state is not self._zookeeper:
            self._zookeeper = zookeeper.state
            self._tell(lambda: cluster_row(self._cluster), f"ZooKeeper (port {zookeeper.port}): {zookeeper.state}")
        for view in views:
            state = state_of(view)
            if self._states.get(view.status.id, BrokerState.RUNNING) is not state:
                self._tell(partial(broker_row, view), f"broker {view.status.id} ({view.status.address}): {state}")
            self._states[view.status.id] = state

    def _tell(self, row: Callable[[], Row], text: str) -> None:
        if self._as_json:
            print_json(row())
        else:
            click.echo(text)
