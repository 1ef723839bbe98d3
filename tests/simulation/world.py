"""One simulated world: clusters of one kind and all that happens to them, from one seed.

Owns the life of a world and why it ends: an invariant that does not hold, an exception that nobody expected, a broker
that could not go on. Must not know what clusters do.
"""

import asyncio
import gc
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from random import Random
from typing import Any

from tests.simulation.clusters import Members, SimulatedCluster, SingleNode, Universe
from tests.simulation.judge import Violated
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Network
from tests.simulation.randomness import seeded
from tests.simulation.story import Story

_LIMIT_S = 400.0


class Kind(StrEnum):
    """Of which clusters a world has."""

    SINGLE = "single"
    """One or two nodes, each a cluster by itself."""
    CLUSTER = "cluster"
    """One of several members."""


@dataclass(frozen=True, slots=True)
class Result:
    seed: int
    story: Story
    failure: str | None
    """Why this world is not as it should be."""


def simulate(seed: int, kind: Kind = Kind.SINGLE) -> Result:
    """Live one world to its end."""
    rng = Random(f"world {seed}" if kind is Kind.SINGLE else f"{kind} {seed}")
    loop = VirtualLoop(rng)
    story = Story(lambda: loop.now_ns)
    failure = None
    # What is forgotten is unwound when the collector finds it: at another moment in each run.
    gc.disable()
    _keep_code()
    try:
        with seeded(seed):
            world = World(loop, rng, story, kind)
            with _log_lines_to(world):
                loop.run(world.live(), limit_s=_LIMIT_S)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        if not isinstance(error, Violated):
            story.tell("world", "".join(traceback.format_exception(error)))
    finally:
        loop.close()
        gc.enable()
    return Result(seed, story, failure)


@cache
def _keep_code() -> None:
    """What is there before the first world, the code above all, need not be looked through after each."""
    gc.freeze()


class World:
    def __init__(self, loop: VirtualLoop, rng: Random, story: Story, kind: Kind) -> None:
        self._loop = loop
        self._story = story
        self._failure: Violated | None = None
        loop.on_exception = self._uncaught
        loop.on_idle = self._look
        universe = Universe(loop, rng, Network(loop, rng), story, self.fail)
        self._clusters = _new_clusters(universe, kind)

    async def live(self) -> None:
        await asyncio.gather(*(cluster.live() for cluster in self._clusters))

    def tell(self, what: str) -> None:
        """Of whoever runs."""
        self._story.tell(self._loop.current.name, what)

    def fail(self, why: str) -> None:
        """End the world, as soon as all that follows from the last event has happened."""
        if self._failure is None:
            self.tell(f"FAILED: {why}")
            self._failure = Violated(why)

    def _look(self) -> None:
        if self._failure is not None:
            raise self._failure
        for cluster in self._clusters:
            cluster.look()

    def _uncaught(self, context: dict[str, Any]) -> None:
        self.fail(f"{context['message']}: {context.get('exception')!r}")


def _new_clusters(universe: Universe, kind: Kind) -> list[SimulatedCluster]:
    if kind is Kind.CLUSTER:
        return [Members(universe)]
    count = universe.rng.choice((1, 1, 1, 2))
    return [SingleNode(universe, number) for number in range(1, count + 1)]


class _LogLines(logging.Handler):
    """The brokers' own log lines are part of the story; an exception that nobody expected is the end of it."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        error = f": {record.exc_info[1]!r}" if record.exc_info else ""
        line = f"{record.levelname}: {record.getMessage()}{error}"
        if record.exc_info:
            self._world.fail(line)
        else:
            self._world.tell(line)


@contextmanager
def _log_lines_to(world: World) -> Iterator[None]:
    logger, handler = logging.getLogger("lamina"), _LogLines(world)
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
