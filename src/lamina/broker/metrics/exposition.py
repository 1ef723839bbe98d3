"""The text of ``/metrics``: Prometheus's own format, or OpenMetrics when a client asks for it.

Owns that a scrape of ten thousand partitions does not hold up the loop: the text is made on the loop, where the
counters live, a few samples at a time. ``prometheus_client`` writes it and is imported with the first scrape. Must not
know where a value comes from.
"""

import asyncio
import importlib
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from lamina.broker.metrics.collecting import Tallies, collect
from lamina.broker.metrics.group_lag import find_group_lags
from lamina.broker.metrics.group_tally import tally_groups
from lamina.broker.metrics.machine import Machine, measure_machine
from lamina.broker.metrics.metric import Metric, Sample, Samples
from lamina.broker.metrics.replication_tally import tally_replication
from lamina.broker.metrics.sources import MetricSources
from lamina.broker.threads import giving_way

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family
    from prometheus_client.registry import Collector

logger = logging.getLogger(__name__)

SAMPLES_AT_A_TIME = 100
"""About half a millisecond's work."""
_MACHINE_SECONDS = 2.0
"""A disk that hangs keeps its threads busy: its figures are left out, the others are shown."""
_END = b"# EOF\n"


async def render(sources: MetricSources, accept: str = "") -> tuple[str, bytes]:
    """The content type and the text, in the format that the ``Accept`` header prefers."""
    tallies = Tallies(
        await _measure(sources),
        await tally_groups(sources.groups),
        await find_group_lags(sources.groups, sources.partitions, sources.clocks),
        await tally_replication(sources.metadata, sources.partitions, sources.clocks),
    )
    encode, content_type = _encoder(accept)
    pieces: list[bytes] = []
    for metric, samples in collect(sources, tallies):
        for number, some in enumerate(_slices(samples)):
            text: bytes = encode(_Registry(_family(metric, some)))
            text = text.removesuffix(_END)
            pieces.append(text if number == 0 else _without_head(text))
            await asyncio.sleep(0)
    if "openmetrics" in content_type:
        pieces.append(_END)
    return content_type, b"".join(pieces)


def _encoder(accept: str) -> "tuple[Callable[[Collector], bytes], str]":
    from prometheus_client.exposition import choose_encoder

    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):
        # A version that is no number.
        return choose_encoder("")


async def _measure(sources: MetricSources) -> Machine:
    paths = [directory.path for directory in sources.directories]
    measuring = sources.threads.run(partial(_measure_on_thread, paths))
    done, _ = await asyncio.wait({measuring}, timeout=_MACHINE_SECONDS)
    if not done:
        logger.warning("no figures of the disks within %g s: all threads are busy", _MACHINE_SECONDS)
        return Machine()
    return measuring.result()


def _measure_on_thread(paths: list[str]) -> Machine:
    # Importing takes a while the first time, and is as good done here.
    with giving_way():
        importlib.import_module("prometheus_client.exposition")
    return measure_machine(paths)


def _slices(samples: Samples) -> Iterator[list[Sample]]:
    """At least one, so that a metric without samples is listed too."""
    left = iter(samples)
    some = list(islice(left, SAMPLES_AT_A_TIME))
    yield some
    while some := list(islice(left, SAMPLES_AT_A_TIME)):
        yield some


def _without_head(text: bytes) -> bytes:
    """The samples behind the lines that name the metric."""
    at = 0
    while text.startswith(b"# ", at):
        at = text.index(b"\n", at) + 1
    return text[at:]


class _Registry:
    """What ``prometheus_client`` asks for the metrics to write."""

    def __init__(self, family: "Family") -> None:
        self._family = family

    def collect(self) -> "Iterable[Family]":
        return (self._family,)


def _family(metric: Metric, samples: Iterable[Sample]) -> "Family":
    from prometheus_client.core import Metric as Family

    family = Family(metric.name.removesuffix("_total"), metric.help_text, metric.kind)
    for labels, value, suffix, bound in samples:
        named = dict(zip(metric.labels, labels, strict=True))
        if bound is not None:
            named["le"] = bound
        family.add_sample(metric.name + suffix, named, value)
    return family
