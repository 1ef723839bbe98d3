"""Another revision of this repository takes Kafka's place, with its own code."""

import subprocess
from pathlib import Path

from bench.revisions import AFTER, BEFORE, bench_from, command_of, extract, trials


def test_a_broker_of_given_sources_runs_their_code(tmp_path: Path) -> None:
    package = tmp_path / "lamina"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "cli.py").write_text("def main():\n    print('an earlier broker')\n")
    output = subprocess.run([*command_of(tmp_path), "serve"], capture_output=True, check=True, text=True).stdout
    assert output == "an earlier broker\n"


def test_no_start_of_an_earlier_revision_compiles_its_code(tmp_path: Path) -> None:
    sources = extract("HEAD", tmp_path / "sources")
    modules = [path for path in sources.rglob("*.py") if path.parent.name == "broker"]
    assert modules
    assert all(list((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc")) for path in modules)


def test_every_row_is_measured_on_both_revisions_and_once() -> None:
    rows = trials(is_quick=True)
    assert {(*row.subjects.items(),) for row in rows} == {((BEFORE, BEFORE), (AFTER, AFTER))}
    names = [row.name for row in rows]
    assert len(names) == len(set(names))
    assert {"start", "produce-16", "batches-100"} <= set(names)


def test_a_whole_run_is_not_for_the_docs() -> None:
    assert not bench_from("HEAD").is_published
