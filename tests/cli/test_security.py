"""`lamina security init`, as it is typed."""

import json
from pathlib import Path

import pytest

from tests.cli.running import Lamina


def test_what_was_made_is_told(lamina: Lamina, tmp_path: Path) -> None:
    outcome = lamina("security", "init", tmp_path / "secure", "--user", "orders")
    assert outcome.status == 0
    assert outcome.out.splitlines() == [
        f"Made 7 files in {tmp_path}/secure; each can be read by you alone.",
        f"Keep {tmp_path}/secure/ca-key.pem somewhere else: whoever has it can be anybody.",
    ]
    again = lamina("security", "init", tmp_path / "secure")
    assert again.status == 1
    assert again.err == f"lamina: {tmp_path}/secure is not empty, and nothing is overwritten: name a new directory\n"


def test_in_json_each_file_is_a_line(lamina: Lamina, tmp_path: Path) -> None:
    outcome = lamina("security", "init", tmp_path / "secure", "--json")
    paths = [json.loads(line)["path"] for line in outcome.out.splitlines()]
    assert sorted(paths) == sorted(str(path) for path in (tmp_path / "secure").iterdir())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--broker", "m1"), "'m1' is not of the form ID=HOST"),
        (("--broker", "1=m1"), "a cluster needs both --broker, once for each, and --zookeeper"),
        (("--zookeeper", "zk:2181"), "a cluster needs both --broker, once for each, and --zookeeper"),
        (("--host", "h", "--broker", "1=m1", "--zookeeper", "zk:2181"), "--host is for one broker alone"),
        (("--broker", "1=m1", "--broker", "1=m2", "--zookeeper", "zk:2181"), "each id can be given once"),
        (("--user", "admin"), "--user 'admin': a file of that name is made for another purpose"),
        (("--user", "../../etc/passwd"), "a name has up to 64 letters"),
        (("--user", "a", "--user", "a"), "--user: each name can be given once"),
        (("--port", "65535"), "--port 65535: must be from 1 to 65534"),
        (("--days", "0"), "--days 0: must be from 1 to 36500"),
    ],
)
def test_what_makes_no_sense_makes_nothing(
    lamina: Lamina, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    outcome = lamina("security", "init", tmp_path / "secure", *arguments)
    assert outcome.status == 2
    assert sentence in outcome.err
    assert not (tmp_path / "secure").exists()
