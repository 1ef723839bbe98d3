"""What is shown of a cluster while it runs: a table that stays in its place, or one line for each change.

Must not ask brokers anything.
"""

from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

import click

from lamina.cli.cluster.rows import HEADINGS, broker_row, cells, cluster_row, state_text, troubles
from lamina.cli.printing.tables import Row, print_json
from lamina.cluster.broker_figures import BrokerView
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

    def show(self, views: Sequence[BrokerView]) -> None:
        self._live.update(render(self._cluster, views), refresh=True)


def render(cluster: LocalCluster, views: Sequence[BrokerView]) -> "RenderableType":
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if number >= _NUMBERS_FROM else "left", no_wrap=True)
    for view in views:
        table.add_row(*cells(view), style=None if state_text(view) == "running" else "yellow")
    return Group(table, *(Text(trouble, style="yellow") for trouble in troubles(cluster, views)))


class StateLines:
    """Elsewhere: one line for each process whose state has changed, as text or as JSON."""

    def __init__(self, cluster: LocalCluster, *, as_json: bool) -> None:
        self._cluster = cluster
        self._as_json = as_json
        self._states: dict[int, str] = {}
        self._has_zookeeper = True

    def __enter__(self) -> "StateLines":
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        pass

    def show(self, views: Sequence[BrokerView]) -> None:
        has_zookeeper = self._cluster.zookeeper_pid() is not None
        if has_zookeeper != self._has_zookeeper:
            self._has_zookeeper = has_zookeeper
            self._tell(lambda: cluster_row(self._cluster), f"ZooKeeper: {'running' if has_zookeeper else 'dead'}")
        for view in views:
            state = state_text(view)
            if self._states.get(view.status.id, "running") != state:
                self._tell(partial(broker_row, view), f"broker {view.status.id} ({view.status.address}): {state}")
            self._states[view.status.id] = state

    def _tell(self, row: Callable[[], Row], text: str) -> None:
        if self._as_json:
            print_json(row())
        else:
            click.echo(text)
