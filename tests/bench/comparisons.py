"""Results for tests of what is made of them: two contestants, three rounds."""

from collections.abc import Sequence

from bench.results import Better, Figure, Pair, Result

PAIR = Pair(rival="kafka", ours="lamina")
UNITS: dict[Better, str] = {"more": "/s", "less": "ms", "neither": "cores"}
CONTESTANTS = {"kafka": "Kafka", "lamina": "Lamina"}


def result(
    kafka: Sequence[float],
    lamina: Sequence[float],
    better: Better = "more",
    name: str = "requests",
    variant: str = "",
    group: str = "Small requests",
) -> Result:
    figure = Figure(group, name, UNITS[better], better, variant)
    return Result("trial", figure, {"kafka": kafka, "lamina": lamina})
