"""What the controller makes of a broker's report: the image in which it stands.

Owns which part of a report leads to which event, in which order. Must not know how a report came, nor what is stored.
"""

from lamina.broker.metadata.reports import Report
from lamina.controller.brokers import (
    Arrival,
    broker_drains,
    broker_ready,
    replicas_made,
    replicas_offline,
    replicas_removed,
)
from lamina.controller.deletion import deletion_reported
from lamina.controller.election import ElectionFacts
from lamina.image.image import Broker, Image


def may_have_news(image: Image, broker: Broker, report: Report) -> bool:
    """Whether the image may not show all that a broker reports. Found at once, however many partitions there are."""
    if report.made or report.removed or report.deleted:
        return True
    known = image.brokers.get(broker.id)
    if known is None or known.epoch != broker.epoch:
        return report.is_ready
    is_draining = report.is_draining and not known.is_draining
    return bool(report.lost) or is_draining or known.offline != report.offline


def with_report(image: Image, arrival: Arrival, report: Report, facts: ElectionFacts) -> Image:
    """The same image where there is nothing new in the report. ``arrival`` is of the broker that sent it."""
    broker_id = arrival.broker.id
    image = replicas_made(image, broker_id, report.made)
    image = replicas_removed(image, broker_id, report.removed)
    image = deletion_reported(image, broker_id, report.deleted)
    known = image.brokers.get(broker_id)
    if known is None or known.epoch != arrival.broker.epoch:
        return broker_ready(image, arrival, facts) if report.is_ready else image
    # What is lost is looked at each time: it can be made again as soon as it is out of the in-sync set.
    if report.lost or known.offline != report.offline:
        image = replicas_offline(image, broker_id, report.offline - report.lost, report.lost, facts)
    if report.is_draining and not known.is_draining:
        image = broker_drains(image, broker_id, facts)
    return image
