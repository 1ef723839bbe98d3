"""docs/cli.md names every field that ``--json`` prints, every command and every exit status."""

from pathlib import Path

from lamina.cli import status
from lamina.cli.app import COMMANDS
from tests.cli.running import Lamina

DOCUMENT = (Path(__file__).parents[2] / "docs/cli.md").read_text()


def test_every_field_of_json_is_documented(lamina: Lamina, directory: Path) -> None:
    (directory / "orders-0/00000000000000000014.index").unlink()
    (directory / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 0\n")
    index = directory / "orders-0/00000000000000000028.index"
    index.write_bytes(index.read_bytes() + bytes(8))
    files = [path for path in sorted(directory.rglob("*")) if path.is_file() and path.name != ".lock"]
    rows = lamina("dump", "--records", "--json", *files).objects
    rows += lamina("verify", "--json", "--dir", directory).objects
    rows += lamina("doctor", "--json", "--data-dir", directory, "--listen", "127.0.0.1:0").objects
    assert len({row["type"] for row in rows}) == 14
    for row in rows:
        for name in (*row, row["type"]):
            assert f"`{name}`" in DOCUMENT


def test_every_command_and_exit_status_is_documented() -> None:
    assert all(f"## `lamina {name}" in DOCUMENT for name in COMMANDS)
    statuses = [value for name, value in vars(status).items() if name.isupper()]
    assert all(f"\n| {value} | " in DOCUMENT for value in statuses)
