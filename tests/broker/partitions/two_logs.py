"""A model of one partition's replicas: plain lists of records, and the leader's side of a fetch as R26 tells it."""

from dataclasses import dataclass, field
from typing import cast

from lamina.broker.partitions.follower import (
    Reaction,
    first_offset,
    followed_high_watermark,
    followed_log_start,
    offset_of_shorter_leader,
    offset_to_start_anew,
    reaction_to,
    truncation_offset,
)
from lamina.errors import ErrorCode
from lamina.log.epochs import EpochStart, LeaderEpochs
from lamina.log.files import Disk

Record = tuple[int, int]
"""The leader epoch under which it was written, and a number of its own."""


def epochs_of(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs(cast(Disk, None), "", [EpochStart(*entry) for entry in entries])


@dataclass
class ModelLog:
    log_start_offset: int = 0
    records: list[Record] = field(default_factory=list)
    """From the log start on."""
    epochs: LeaderEpochs = field(default_factory=epochs_of)
    high_watermark: int = 0

    @property
    def log_end_offset(self) -> int:
        return self.log_start_offset + len(self.records)

    def at(self, offset: int) -> Record:
        return self.records[offset - self.log_start_offset]

    def append(self, record: Record) -> None:
        self.epochs.assign(record[0], self.log_end_offset)
        self.records.append(record)

    def truncate(self, offset: int) -> None:
        del self.records[max(offset - self.log_start_offset, 0) :]
        self.log_start_offset = min(self.log_start_offset, offset)
        self.epochs.truncate_from_end(self.log_end_offset)
        self.high_watermark = min(self.high_watermark, self.log_end_offset)

    def start_anew(self, offset: int) -> None:
        self.records.clear()
        self.epochs.truncate_from_end(0)
        self.log_start_offset = self.high_watermark = offset

    def delete_to(self, offset: int) -> None:
        gone = max(offset - self.log_start_offset, 0)
        if gone:
            del self.records[:gone]
            self.log_start_offset = offset
            held = [entry for entry in self.epochs.entries if entry.start_offset <= offset]
            later = [entry for entry in self.epochs.entries if entry.start_offset > offset]
            first = [EpochStart(held[-1].epoch, offset)] if held else []
            self.epochs = epochs_of(*first, *later)


@dataclass(frozen=True)
class Answer:
    error_code: int = 0
    diverging: EpochStart | None = None
    records: tuple[Record, ...] = ()
    high_watermark: int = -1
    log_start_offset: int = -1


def answer(leader: ModelLog, offset: int, last_epoch: int, max_records: int) -> Answer:
    """R26, in its order."""
    marks = (leader.high_watermark, leader.log_start_offset)
    if last_epoch >= 0:
        end = leader.epochs.end_of(last_epoch, leader.log_end_offset)
        if end.epoch < 0 or offset < leader.log_start_offset:
            return Answer(ErrorCode.OFFSET_OUT_OF_RANGE)
        if end.epoch < last_epoch or end.start_offset < offset:
            return Answer(0, end, (), *marks)
    if not leader.log_start_offset <= offset <= leader.log_end_offset:
        return Answer(ErrorCode.OFFSET_OUT_OF_RANGE)
    begin = offset - leader.log_start_offset
    return Answer(0, None, tuple(leader.records[begin : begin + max_records]), *marks)


def shared_end(one: ModelLog, other: ModelLog) -> int:
    """Up to where both hold the same records, from where both start; 0 where one ends before the other starts."""
    offset = max(one.log_start_offset, other.log_start_offset)
    end = min(one.log_end_offset, other.log_end_offset)
    while offset < end and one.at(offset) == other.at(offset):
        offset += 1
    return offset if offset <= end else 0


def begin(log: ModelLog) -> None:
    log.truncate(first_offset(log, log.high_watermark))


def follow_once(log: ModelLog, leader: ModelLog, max_records: int) -> None:
    """One fetch, and all that follows from its answer. What both share is never cut."""
    told = answer(leader, log.log_end_offset, log.epochs.latest, max_records)
    shared = shared_end(log, leader)
    if told.error_code:
        assert reaction_to(told.error_code) is Reaction.ASK_OFFSETS
        shorter = offset_of_shorter_leader(log, leader.log_end_offset)
        if shorter is not None:
            log.truncate(shorter)
        else:
            anew = offset_to_start_anew(log, leader.log_start_offset)
            if anew is not None:
                log.start_anew(anew)
    elif told.diverging is not None:
        offset = truncation_offset(log, log.high_watermark, told.diverging)
        # Where the first record that both could share differs, or is none, they share none.
        assert offset >= shared or shared <= max(log.log_start_offset, leader.log_start_offset)
        log.truncate(offset)
    else:
        for record in told.records:
            log.append(record)
        log.high_watermark = followed_high_watermark(log, told.high_watermark)
        log.delete_to(followed_log_start(log, log.high_watermark, told.log_start_offset))
    assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
