"""Several files in one input."""

from fuzz.choices import Choices
from fuzz.files import pack_files, scratch, unpack_files

NAMES = ("a", "b/c", "d")


def test_packed_files_come_out_as_they_went_in() -> None:
    files = {"d": b"", "a": b"first", "b/c": bytes(300)}
    assert unpack_files(NAMES, Choices(pack_files(NAMES, files))) == files


def test_a_cut_input_is_an_input_too() -> None:
    packed = pack_files(NAMES, {"a": b"first", "b/c": b"second"})
    assert unpack_files(NAMES, Choices(packed[:-2])) == {"a": b"first", "b/c": b"seco"}
    assert unpack_files(NAMES, Choices(b"\5")) == {"d": b""}


def test_a_scratch_directory_is_gone_afterwards() -> None:
    with scratch({"b/c": b"second"}) as root:
        assert (root / "b" / "c").read_bytes() == b"second"
    assert not root.exists()
