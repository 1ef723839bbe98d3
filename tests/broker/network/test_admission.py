"""Who may bring a large request in, and who waits."""

from lamina.broker.network.admission import SMALL_FRAME_BYTES, Admission

MEBIBYTE = 1024 * 1024


def never() -> None:
    raise AssertionError("nobody was to be called")


def test_a_frame_that_finds_no_room_waits_until_some_is_given_back() -> None:
    admission = Admission(100 * MEBIBYTE)
    called: list[str] = []
    assert admission.admit("a", 60 * MEBIBYTE, never)
    assert not admission.admit("b", 60 * MEBIBYTE, lambda: called.append("b"))
    assert not admission.admit("c", 50 * MEBIBYTE, lambda: called.append("c"))
    assert admission.waiting == 2
    admission.forget("c")
    admission.give_back(60 * MEBIBYTE)
    assert called == ["b"]
    assert (admission.held_bytes, admission.waiting) == (0, 0)


def test_the_last_eighth_is_for_small_frames() -> None:
    admission = Admission(80 * MEBIBYTE)
    assert admission.admit("large", 69 * MEBIBYTE, never)
    assert not admission.admit("larger than small", SMALL_FRAME_BYTES + 1, never)
    assert admission.admit("small", SMALL_FRAME_BYTES, never)


def test_a_frame_beyond_the_limit_is_taken_when_it_is_alone() -> None:
    admission = Admission(MEBIBYTE)
    assert admission.admit("a", 100 * MEBIBYTE, never)
    assert not admission.admit("b", 1, never)


def test_the_buffer_that_was_used_longest_ago_is_given_up_first() -> None:
    admission = Admission(16 * 3 * MEBIBYTE)
    released: list[str] = []
    for name in "abc":
        admission.keep(name, MEBIBYTE, lambda name=name: released.append(name))  # type: ignore[misc]
    admission.keep("a", MEBIBYTE, lambda: released.append("a"))
    admission.keep("d", MEBIBYTE, lambda: released.append("d"))
    assert released == ["b"]
    admission.forget("c")
    assert admission.admit("a", MEBIBYTE, never)
    assert admission.kept_bytes == MEBIBYTE
