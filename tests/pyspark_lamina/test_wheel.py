"""The wheel ``pyspark-lamina``: what Spark finds in it, and what it brings along."""

import subprocess
import sys
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import lamina

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "packaging/pyspark-lamina"


def test_it_holds_the_package_and_brings_lamina_of_the_same_version_and_no_spark(tmp_path: Path) -> None:
    build = "import hatchling.build, sys; hatchling.build.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=PROJECT, check=True)
    (wheel,) = tmp_path.glob("pyspark_lamina-*.whl")
    with ZipFile(wheel) as packed:
        names = packed.namelist()
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        told = message_from_bytes(packed.read(metadata))
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/pyspark_lamina").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == sources
    assert told["Version"] == lamina.__version__
    assert told.get_all("Requires-Dist") == [f"lamina[arrow,registry]=={lamina.__version__}"]


def test_the_source_is_found_without_importing_what_reads_and_writes() -> None:
    look = (
        "import sys, pyspark_lamina; print(pyspark_lamina.DefaultSource.name(), "
        "[name for name in ('lamina', 'numba', 'pyarrow') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert found.stdout == "lamina []\n"
