"""The tables in README.md and docs/, from what whole runs left in docs/: ``python -m bench.published``.

Owns where each stands: between two comment lines that name the bench. A bench that has no report yet leaves its place
as it is. A test fails where a page differs from its report.
"""

from __future__ import annotations

from pathlib import Path

from bench.machine import PROJECT
from bench.report import as_markdown, read_report

REPORTS = PROJECT / "docs"
PAGES = {
    "bench-kafka": PROJECT / "README.md",
    "bench-tls": PROJECT / "docs" / "security.md",
    "bench-cleaner": PROJECT / "README.md",
    "bench-cluster": PROJECT / "docs" / "cluster.md",
    "bench-spark": PROJECT / "docs" / "spark.md",
}


def report_of(bench: str) -> Path:
    return REPORTS / f"{bench}.json"


def filled(page: str, bench: str, table: str) -> str:
    """Raises `ValueError` where the page has no place for it."""
    begin, end = f"<!-- {bench}: by make bench-tables -->\n", f"<!-- end of {bench} -->\n"
    before, found, rest = page.partition(begin)
    _, ends, after = rest.partition(end)
    if not (found and ends):
        raise ValueError(f"there is no place for {bench}: {begin.strip()} and {end.strip()}")
    return f"{before}{begin}\n{table}\n\n{end}{after}"


def main() -> None:
    for bench, page in PAGES.items():
        if not report_of(bench).exists():
            print(f"{bench}: no report yet")
            continue
        page.write_text(filled(page.read_text(), bench, as_markdown(read_report(report_of(bench)))))
        print(f"{bench}: {page.relative_to(PROJECT)}")


if __name__ == "__main__":
    main()
