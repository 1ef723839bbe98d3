"""What was promised or seen is there at last: once, where it was said to be, and nothing else in its place."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from tests.history.anomalies import Anomaly, Kind, shown
from tests.history.events import History, Partition, Read, Send, SendOutcome, TransactionOutcome


class _Claim(NamedTuple):
    """Somebody says that a value is at a place. No offset: somewhere in the partition."""

    partition: Partition
    offset: int | None
    value: bytes
    says: str
    stays: bool


def durability_anomalies(history: History) -> Iterator[Anomaly]:
    claims = list(_claims(history))
    yield from _lost(history, claims)
    yield from _duplicates(claims)
    yield from _inconsistent_offsets(claims)
    yield from _unknown_values(history, claims)


def _claims(history: History) -> Iterator[_Claim]:
    sent = {(send.partition[0], send.value): send for send in history.sends}
    for send in history.sends:
        if send.outcome is SendOutcome.ACKED and send.is_lasting:
            said = f"acknowledged to {send.producer} at {send.ended_ms:.0f} ms"
            yield _Claim(send.partition, send.offset, send.value, said, _is_committed(history, send))
    for read in _reads(history):
        writer = sent.get((read.partition[0], read.value))
        # Who reads what is not committed yet may see what is aborted later.
        is_committed = writer is not None and _is_committed(history, writer)
        stays = is_committed or read.reader not in history.uncommitted_readers
        yield _Claim(read.partition, read.offset, read.value, f"read by {read.reader} at {read.at_ms:.0f} ms", stays)
    for partition, records in history.final.items():
        for offset, value in records.items():
            yield _Claim(partition, offset, value, "there at last", True)


def _reads(history: History) -> Iterator[Read]:
    return (move for move in history.moves if isinstance(move, Read))


def _is_committed(history: History, send: Send) -> bool:
    return send.transaction is None or history.outcome_of(send.transaction) is TransactionOutcome.COMMITTED


def _lost(history: History, claims: list[_Claim]) -> Iterator[Anomaly]:
    highest: dict[Partition, int] = defaultdict(lambda: -1)
    for read in _reads(history):
        highest[read.partition] = max(highest[read.partition], read.offset)
    there: dict[Partition, set[bytes]] = defaultdict(set)
    for partition, records in history.final.items():
        there[partition] = set(records.values())
        highest[partition] = max((highest[partition], *records))
    told: set[tuple[Partition, bytes]] = set()
    for claim in claims:
        key = claim.partition, claim.value
        if not claim.stays or claim.partition[0] in history.compacted or key in told:
            continue
        if claim.value not in there[claim.partition]:
            told.add(key)
            is_last = claim.offset is not None and claim.offset > highest[claim.partition]
            what = f"{_place(claim)}: {shown(claim.value)} was {claim.says}, and is not there at last"
            yield Anomaly(Kind.UNSEEN if is_last else Kind.LOST, what)


def _duplicates(claims: list[_Claim]) -> Iterator[Anomaly]:
    first: dict[tuple[str, bytes], _Claim] = {}
    told: set[tuple[str, bytes]] = set()
    for claim in claims:
        if claim.offset is None:
            continue
        key = claim.partition[0], claim.value
        before = first.setdefault(key, claim)
        if (before.partition, before.offset) != (claim.partition, claim.offset) and key not in told:
            told.add(key)
            what = f"{shown(claim.value)} was {before.says} at {_place(before)}, and {claim.says} at {_place(claim)}"
            yield Anomaly(Kind.DUPLICATE, what)


def _inconsistent_offsets(claims: list[_Claim]) -> Iterator[Anomaly]:
    first: dict[tuple[Partition, int], _Claim] = {}
    told: set[tuple[Partition, int]] = set()
    for claim in claims:
        if claim.offset is None:
            continue
        key = claim.partition, claim.offset
        before = first.setdefault(key, claim)
        if before.value != claim.value and key not in told:
            told.add(key)
            what = (
                f"{_place(claim)}: {shown(before.value)} was {before.says}, and {shown(claim.value)} was {claim.says}"
            )
            yield Anomaly(Kind.INCONSISTENT_OFFSETS, what)


def _unknown_values(history: History, claims: list[_Claim]) -> Iterator[Anomaly]:
    sent = {(send.partition, send.value) for send in history.sends}
    told: set[tuple[Partition, bytes]] = set()
    for claim in claims:
        key = claim.partition, claim.value
        if key not in sent and key not in told:
            told.add(key)
            what = f"{_place(claim)}: {shown(claim.value)} was {claim.says}; nobody sent it there"
            yield Anomaly(Kind.UNKNOWN_VALUE, what)


def _place(claim: _Claim) -> str:
    topic, index = claim.partition
    return f"{topic}-{index} at {'an unknown offset' if claim.offset is None else claim.offset}"
