"""meta.properties and partition.metadata; formats.md §2.5."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.log.files import Disk
from lamina.log.identity import (
    Identity,
    IdentityError,
    format_id,
    format_partition_metadata,
    new_id,
    parse_id,
    parse_partition_metadata,
    read_meta_properties,
    read_topic_id,
    write_meta_properties,
    write_topic_id,
)

TOPIC_ID = bytes(range(16))


@given(st.binary(min_size=16, max_size=16))
def test_an_id_is_22_characters_and_read_back(raw: bytes) -> None:
    assert len(format_id(raw)) == 22
    assert parse_id(format_id(raw)) == raw


@given(st.text(max_size=24))
def test_what_is_no_id_is_an_identity_error(text: str) -> None:
    try:
        assert len(parse_id(text)) == 16
    except IdentityError as error:
        assert repr(text) in str(error)


def test_a_new_id_does_not_begin_with_a_dash() -> None:
    assert not any(new_id().startswith("-") for _ in range(300))


def test_partition_metadata_has_two_lines_and_no_final_newline(tmp_path: Path) -> None:
    assert format_partition_metadata(TOPIC_ID) == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    write_topic_id(Disk(), str(tmp_path), TOPIC_ID)
    assert read_topic_id(Disk(), str(tmp_path)) == TOPIC_ID
    assert read_topic_id(Disk(), str(tmp_path / "elsewhere")) is None


@pytest.mark.parametrize(
    "data",
    [b"", b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"version: 0", b"version: 0\ntopic_id: x", b"\xff\xfe"],
)
def test_bad_partition_metadata_is_an_identity_error(data: bytes) -> None:
    with pytest.raises(IdentityError):
        parse_partition_metadata(data)


def test_the_zero_id_belongs_to_nobody() -> None:
    with pytest.raises(IdentityError, match="zero id"):
        parse_partition_metadata(format_partition_metadata(bytes(16)))


def test_meta_properties_are_read_back(tmp_path: Path) -> None:
    assert read_meta_properties(Disk(), str(tmp_path)) is None
    identity = Identity("cluster=1: a", 7, "AAECAwQFBgcICQoLDA0ODw")
    write_meta_properties(Disk(), str(tmp_path), identity)
    assert read_meta_properties(Disk(), str(tmp_path)) == identity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#\n#Mon Jan 01\nbroker.id=3\n", Identity(None, 3, None)),
        ("version=0\nbroker.id=3\ncluster.id=c\n", Identity("c", 3, None)),
        ("version=1\nnode.id=4\ncluster.id=c\ndirectory.id=d\n", Identity("c", 4, "d")),
        ("version=0\nbroker.id=-1\n", Identity(None, -1, None)),
    ],
)
def test_versions_0_and_1_are_known(tmp_path: Path, text: str, expected: Identity) -> None:
    (tmp_path / "meta.properties").write_text(text)
    assert read_meta_properties(Disk(), str(tmp_path)) == expected


@pytest.mark.parametrize("text", ["version=2\n", "version=x\n", "node.id=x\nversion=1\n", "broker.id=--1\n"])
def test_bad_meta_properties_are_an_identity_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(IdentityError, match=r"meta\.properties"):
        read_meta_properties(Disk(), str(tmp_path))


@given(
    st.binary(max_size=60)
    | st.sampled_from([b"version=1\nnode.id=", b"broker.id="]).flatmap(
        lambda start: st.text("-0123456789²x", max_size=6).map(lambda end: start + end.encode())
    )
)
def test_any_bytes_give_an_identity_or_an_identity_error(data: bytes) -> None:
    class OneFile(Disk):
        def open(self, path: str, *, write: bool = False, create: bool = False) -> "Content":  # type: ignore[override]
            return Content()

    class Content:
        def size(self) -> int:
            return len(data)

        def pread(self, size_bytes: int, position: int) -> bytes:
            return data

        def close(self) -> None:
            return

    try:
        assert read_meta_properties(OneFile(), "/") is not None
    except IdentityError as error:
        assert "meta.properties" in str(error)
