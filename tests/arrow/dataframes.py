"""Other people's DataFrame libraries, and what a client of Spark Connect needs: ``make peers-spark`` fetches them.

Owns where they are. They are on the path of processes that tests start, and never on that of the tests themselves:
PySpark behaves in another way where it finds pandas.
"""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIRECTORY = ROOT / "build/dataframes"


def environment() -> dict[str, str]:
    """Of a process that finds them, and this checkout."""
    assert (DIRECTORY / "pandas").is_dir(), f"make peers-spark fetches pandas and others into {DIRECTORY}"
    return {**os.environ, "PYTHONPATH": f"{DIRECTORY}:{ROOT / 'src'}:{ROOT}"}
