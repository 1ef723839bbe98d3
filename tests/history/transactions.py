"""What a transaction wrote is seen whole when it is committed, and never when it is aborted.

The order of writes says nothing about the order of transactions: in Kafka two of them may write to the same partitions
at the same time, each first in one. So a cycle counts only if each of them read what the next one wrote.
"""

from collections import defaultdict
from collections.abc import Iterator

from tests.history.anomalies import Anomaly, Kind, shown
from tests.history.events import History, Partition, Read, Send, SendOutcome, TransactionOutcome


def transaction_anomalies(history: History) -> Iterator[Anomaly]:
    yield from _aborted_reads(history)
    yield from _torn(history)
    yield from _cycles(history)


def _aborted_reads(history: History) -> Iterator[Anomaly]:
    gone = {
        (send.partition, send.value): send
        for send in history.sends
        if send.outcome is SendOutcome.FAILED
        or (send.transaction is not None and history.outcome_of(send.transaction) is TransactionOutcome.ABORTED)
    }
    for partition, offset, value, says in _committed_views(history):
        send = gone.get((partition, value))
        if send is not None:
            why = f"of transaction {send.transaction}, which was aborted," if send.transaction else "which was refused,"
            yield Anomaly(
                Kind.ABORTED_READ, f"{partition[0]}-{partition[1]} at {offset}: {shown(value)} {why} was {says}"
            )


def _committed_views(history: History) -> Iterator[tuple[Partition, int, bytes, str]]:
    for move in history.moves:
        if isinstance(move, Read) and move.reader not in history.uncommitted_readers:
            yield move.partition, move.offset, move.value, f"read by {move.reader} at {move.at_ms:.0f} ms"
    for partition, records in history.final.items():
        for offset, value in records.items():
            yield partition, offset, value, "there at last"


def _torn(history: History) -> Iterator[Anomaly]:
    written: dict[str, list[Send]] = defaultdict(list)
    for send in history.sends:
        if send.transaction is not None and send.partition[0] not in history.compacted:
            written[send.transaction].append(send)
    there = {partition: set(records.values()) for partition, records in history.final.items()}
    for transaction, sends in written.items():
        if history.outcome_of(transaction) is not TransactionOutcome.UNKNOWN:
            continue
        seen = [send for send in sends if send.value in there.get(send.partition, ())]
        if seen and len(seen) < len(sends):
            missing = next(send for send in sends if send.value not in there.get(send.partition, ()))
            what = (
                f"{len(seen)} of {len(sends)} values are there at last: {shown(seen[0].value)} in {seen[0].partition}"
            )
            yield Anomaly(Kind.TORN, f"{transaction}: {what}, not {shown(missing.value)} in {missing.partition}")


def _cycles(history: History) -> Iterator[Anomaly]:
    reads_from = _read_dependencies(history)
    while cycle := _a_cycle(reads_from):
        yield Anomaly(Kind.CYCLE, " read what was written by ".join([*cycle, cycle[0]]))
        for transaction in cycle:
            del reads_from[transaction]


def _read_dependencies(history: History) -> dict[str, set[str]]:
    """Of each transaction those whose values it read."""
    writers = {(send.partition, send.value): send.transaction for send in history.sends}
    reads_from: dict[str, set[str]] = defaultdict(set)
    for move in history.moves:
        if isinstance(move, Read) and move.transaction is not None:
            writer = writers.get((move.partition, move.value))
            is_aborted = history.outcome_of(move.transaction) is TransactionOutcome.ABORTED
            if writer is not None and writer != move.transaction and not is_aborted:
                reads_from[move.transaction].add(writer)
    return reads_from


def _a_cycle(reads_from: dict[str, set[str]]) -> list[str] | None:
    """Nodes from which no way leads on are dropped until none is left, or each has a way that stays among the rest."""
    left = {node: set(others) for node, others in reads_from.items()}
    while True:
        left = {node: {other for other in others if other in left} for node, others in left.items()}
        ends = [node for node, others in left.items() if not others]
        if not ends:
            break
        for node in ends:
            del left[node]
    if not left:
        return None
    way = [min(left)]
    while (following := min(left[way[-1]])) not in way:
        way.append(following)
    return way[way.index(following) :]
