"""``backup.json``: what is written is read again, and what is not ours is one sentence."""

import json
from pathlib import Path

import pytest

from lamina.log.backup import MANIFEST
from lamina.log.backup.copier import BackupError, BackupFile
from lamina.log.backup.directory import TakenPartition
from lamina.log.backup.manifest import Manifest, dump_manifest, read_manifest
from lamina.log.backup.partition import TakenSegment
from lamina.log.files import Disk

PARTITION = TakenPartition("t", 0, bytes(range(16)), 1, [TakenSegment(5, 70, True)], 6, 9, 5, None, 3, "bad")
FILE = BackupFile("logs/t-0/00000000000000000005.log", 70, 1_700_000_000_000, None)
SAMPLE = Manifest("0.1", "c", 1, 10, 20, True, -1, ["x", None], [PARTITION], {FILE.path: FILE})


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(dump_manifest(SAMPLE))
    assert read_manifest(Disk(), str(tmp_path)) == SAMPLE


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "logs/../../x", "", "a//b", 7])
def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, path: object) -> None:
    value = json.loads(dump_manifest(SAMPLE))
    value["files"][0]["path"] = path
    (tmp_path / MANIFEST).write_text(json.dumps(value))
    with pytest.raises(BackupError, match="cannot be read"):
        read_manifest(Disk(), str(tmp_path))


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", '{"version": 1}', "[" * 100_000, "\xff"])
def test_what_is_no_manifest_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_bytes(text.encode("latin-1"))
    with pytest.raises(BackupError, match="cannot be read"):
        read_manifest(Disk(), str(tmp_path))


def test_a_newer_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text('{"version": 3, "lamina_version": "9.9"}')
    with pytest.raises(BackupError, match=r"newer Lamina \(9.9\)"):
        read_manifest(Disk(), str(tmp_path))


def test_a_directory_without_one_is_no_backup(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="is not a backup"):
        read_manifest(Disk(), str(tmp_path))
