"""What a leader sent is checked batch by batch before a follower appends it (R31)."""

import pytest

from lamina.errors import CorruptMessage
from lamina.records import replicated
from lamina.records.replicated import checked_pieces
from tests.log.building import a_batch


def batches(*epochs: int) -> list[bytes]:
    return [bytes(a_batch(b"k=v", base_offset=offset, leader_epoch=epoch)) for offset, epoch in enumerate(epochs)]


def test_whole_batches_are_given_and_a_torn_end_is_left() -> None:
    first, second = batches(0, 0)
    assert b"".join(checked_pieces(first + second[:-1], 0)) == first


def test_r31_a_batch_of_a_later_leader_epoch_ends_it() -> None:
    first, second, third = batches(3, 4, 3)
    assert b"".join(checked_pieces(first + second + third, 3)) == first


def test_r31_a_batch_with_another_crc_is_refused_and_what_is_behind_it_too() -> None:
    first, second, third = batches(0, 0, 0)
    torn = bytearray(first + second + third)
    torn[len(first) + len(second) - 1] ^= 1
    with pytest.raises(CorruptMessage, match="offset 1 has CRC"):
        list(checked_pieces(torn, 0))


def test_a_batch_with_another_offset_is_not_given_before_the_next_one_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """No CRC covers the base offset."""
    sent = batches(0, 0, 0, 0)
    sent[1] = sent[1].replace((1).to_bytes(8), (65).to_bytes(8), 1)
    monkeypatch.setattr(replicated, "PIECE_BATCHES", 1)
    pieces = checked_pieces(b"".join(sent), 0)
    assert next(pieces) == sent[0]
    with pytest.raises(CorruptMessage, match="offset 2 comes after offset 65"):
        next(pieces)


def test_many_batches_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = b"".join(batches(*([0] * 7)))
    monkeypatch.setattr(replicated, "PIECE_BATCHES", 3)
    pieces = list(checked_pieces(sent, 0))
    assert (len(pieces), b"".join(pieces)) == (3, sent)
    monkeypatch.setattr(replicated, "PIECE_BYTES", 1)
    pieces = list(checked_pieces(sent, 0))
    assert (len(pieces), b"".join(pieces)) == (7, sent)
