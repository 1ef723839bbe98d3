"""The memory of one connection's large frames, by itself."""

from lamina.broker.network.admission import Admission, FrameAdmission, strangers_share
from lamina.wire.frames import FrameSplitter

MEBIBYTE = 1024 * 1024


def room_in(admission: Admission) -> FrameAdmission:
    return FrameAdmission(admission, FrameSplitter(64 * MEBIBYTE))


def nobody() -> None:
    raise AssertionError("nobody waits")


def test_a_frame_asks_for_room_once_however_often_its_bytes_come() -> None:
    admission = Admission(10 * MEBIBYTE)
    room = room_in(admission)
    assert room.take(MEBIBYTE, 1.0, nobody)
    assert room.take(MEBIBYTE, 2.0, nobody)
    assert admission.held_bytes == MEBIBYTE
    room.give_back(keeps_buffer=True)
    assert admission.held_bytes == 0


def test_whoever_found_no_room_is_called_when_some_is_given_back() -> None:
    admission = Admission(MEBIBYTE)
    first, second = room_in(admission), room_in(admission)
    called: list[str] = []
    assert first.take(MEBIBYTE, 0.0, nobody)
    assert not second.take(MEBIBYTE, 0.0, lambda: called.append("second"))
    assert second.is_waiting
    first.give_back(keeps_buffer=False)
    assert called == ["second"]
    assert not second.is_waiting


def test_a_connection_whose_kept_buffer_is_taken_away_has_none() -> None:
    admission = Admission(24 * MEBIBYTE)
    rooms = [FrameAdmission(admission, FrameSplitter(64 * MEBIBYTE)) for _ in range(2)]
    for room in rooms:
        frame = MEBIBYTE.to_bytes(4, "big") + bytes(MEBIBYTE)
        while frame:
            room.take(MEBIBYTE, 0.0, nobody)
            buffer = room._frames.buffer_for_recv()
            count = min(len(buffer), len(frame))
            buffer[:count] = frame[:count]
            room._frames.received(count)
            frame = frame[count:]
        assert len(list(room._frames.frames())) == 1
        room.give_back(keeps_buffer=True)
    assert [room._frames.buffer_bytes for room in rooms] == [0, MEBIBYTE + 4]
    assert admission.kept_bytes == MEBIBYTE + 4


def test_a_frame_is_overdue_ten_seconds_after_a_mebibyte_a_second() -> None:
    room = room_in(Admission(64 * MEBIBYTE))
    assert not room.is_overdue(1e9), "nothing is held"
    room.take(5 * MEBIBYTE, 100.0, nobody)
    assert not room.is_overdue(115.0)
    assert room.is_overdue(115.1)


def test_a_connection_that_ends_holds_nothing_and_waits_for_nothing() -> None:
    admission = Admission(MEBIBYTE)
    first, second = room_in(admission), room_in(admission)
    first.take(MEBIBYTE, 0.0, nobody)
    second.take(MEBIBYTE, 0.0, nobody)
    second.forget()
    first.forget()
    assert (admission.held_bytes, admission.kept_bytes, admission.waiting) == (0, 0, 0)


def test_strangers_take_nothing_from_others() -> None:
    everybodys = Admission(16 * MEBIBYTE)
    strangers = strangers_share(everybodys)
    first, second, client = room_in(strangers), room_in(strangers), room_in(everybodys)
    assert first.take(MEBIBYTE, 0.0, nobody)
    assert not second.take(MEBIBYTE, 0.0, nobody)
    assert everybodys.held_bytes == 0
    assert client.take(16 * MEBIBYTE, 0.0, nobody)


def test_who_logs_in_gives_back_to_strangers_what_was_theirs() -> None:
    everybodys = Admission(16 * MEBIBYTE)
    strangers = strangers_share(everybodys)
    room = room_in(strangers)
    assert room.take(MEBIBYTE, 0.0, nobody)
    room.join(everybodys)
    room.give_back(keeps_buffer=True)
    assert (strangers.held_bytes, strangers.kept_bytes, everybodys.held_bytes) == (0, 0, 0)
    assert room.take(4 * MEBIBYTE, 0.0, nobody)
    assert (strangers.held_bytes, everybodys.held_bytes) == (0, 4 * MEBIBYTE)
