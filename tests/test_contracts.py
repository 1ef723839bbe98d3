"""Every import contract can fail: one forbidden import breaks it, and it alone says so."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]

FORBIDDEN = {
    "rooms": ("errors.py", "import lamina.log.files"),
    "files": ("log/segment.py", "import os"),
    "pure": ("records/batch.py", "import time"),
    "await": ("log/segment.py", "import asyncio"),
    "spark": ("log/segment.py", "import pyspark"),
    "schemas": ("wire/fields.py", "import kio"),
    "client": ("broker/node.py", "import confluent_kafka"),
    "http": ("store/values.py", "import starlette"),
    "http-start": ("broker/admin/listening.py", "import lamina.broker.admin.serving"),
    "job": ("broker/node.py", "import lamina.cleaning.clean_log"),
    "peer": ("peer/routes.py", "import time"),
    "kernel": ("records/validate.py", "import lamina.records.kernel"),
}


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as m; m()", "--no-cache"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_every_contract_has_a_forbidden_import_here() -> None:
    assert {contract["id"] for contract in CONTRACTS} == set(FORBIDDEN)


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract["id"])
def test_a_forbidden_import_breaks_its_contract(contract: dict[str, str], copy: Path) -> None:
    module, line = FORBIDDEN[contract["id"]]
    path = copy / "src" / "lamina" / module
    path.write_text(f"{path.read_text()}\n{line}\n")
    result = lint(copy)
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{contract['name']} BROKEN" in result.stdout


def test_the_package_as_it_is_keeps_them_all(copy: Path) -> None:
    result = lint(copy)
    assert result.returncode == 0, result.stdout + result.stderr
