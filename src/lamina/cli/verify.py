"""``lamina verify``: shows what the checks of ``lamina.log.verify`` find."""

import os
from collections.abc import Callable

import click

from lamina.cli.lock_holder import is_held
from lamina.cli.outcome import BAD_INPUT, FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.progress import Advance, bar
from lamina.cli.printing.tables import print_json, print_table
from lamina.clocks import SYSTEM_CLOCKS
from lamina.log.files import Disk
from lamina.log.identity import META_PROPERTIES
from lamina.log.verify.directory import NotALogDirectory, Verification, prepare, verify
from lamina.log.verify.findings import Finding
from lamina.storage import LOGS, METADATA_DB
from lamina.store.member_file import FILE_NAME as MEMBER_FILE


@click.command(
    "verify",
    epilog="""\b
Exit status: 0 fine (warnings at most), 1 something is wrong, 2 not a log directory.

\b
Examples:
  lamina verify --dir /var/lib/lamina
  lamina verify --dir /var/lib/lamina/orders-0
  lamina verify --dir /var/lib/lamina --json | jq 'select(.severity == "error")'""",
)
@click.option(
    "--dir", "directory", required=True, metavar="DIR", help="A data directory, a log directory, or one partition."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line: every finding, then a summary.")
def command(directory: str, as_json: bool) -> int:
    """Check a log directory, or one partition, without writing.

    Reads every batch, index, producer snapshot and checkpoint. Takes no lock; while a broker is running, the
    end of its logs changes and may be reported as unfinished.
    """
    disk = Disk()
    try:
        verification = prepare(disk, _log_directory(directory), is_held)
    except NotALogDirectory as error:
        warn(str(error))
        return BAD_INPUT
    if verification.is_running:
        warn("a broker is running on this directory: the end of its logs may look unfinished")
    clocks = SYSTEM_CLOCKS
    started = clocks.monotonic_seconds()
    with bar("verifying") as advance:
        verify(disk, verification, _sum(advance, verification.total_bytes))
    (_print_json if as_json else _print_table)(verification, clocks.monotonic_seconds() - started)
    return SOMETHING_WRONG if verification.findings.errors else FINE


def _log_directory(directory: str) -> str:
    """Of a data directory, or a backup, the logs in it. One of them has metadata of its own, or belongs to a member."""
    logs = os.path.join(directory, LOGS)
    is_data = os.path.isdir(logs) and any(
        os.path.exists(os.path.join(directory, name)) for name in (METADATA_DB, MEMBER_FILE)
    )
    return logs if is_data and not os.path.exists(os.path.join(directory, META_PROPERTIES)) else directory


def _sum(advance: Advance, total_bytes: int) -> Callable[[int], None]:
    done_bytes = 0

    def add(size_bytes: int) -> None:
        nonlocal done_bytes
        done_bytes += size_bytes
        advance(done_bytes, total_bytes)

    return add


def _print_table(verification: Verification, seconds: float) -> None:
    findings, counts = verification.findings, verification.counts
    ordered = sorted(findings.kept, key=lambda finding: finding.severity)
    print_table(
        ("severity", "file", "position", "offset", "what", "what to do"),
        (_cells(verification.root, finding) for finding in ordered),
    )
    for path, more in findings.not_kept.items():
        click.echo(f"{_below(verification.root, path)}: {more} more of this kind")
    amounts = {
        "partition": counts.partitions,
        "segment": counts.segments,
        "batch": counts.batches,
        "record": counts.records,
        "byte": counts.size_bytes,
    }
    click.echo(
        f"{', '.join(_count(name, amount) for name, amount in amounts.items())} in {seconds:.1f} s: "
        f"{_count('error', findings.errors)}, {_count('warning', findings.warnings)}"
    )


def _cells(root: str, finding: Finding) -> tuple[str, ...]:
    place = ("" if number is None else str(number) for number in (finding.position, finding.offset))
    return (finding.severity, _below(root, finding.path), *place, finding.what, finding.advice)


def _count(name: str, amount: int) -> str:
    if amount == 1:
        return f"1 {name}"
    return f"{amount} {name}es" if name.endswith("ch") else f"{amount} {name}s"


def _below(root: str, path: str) -> str:
    return path.removeprefix(root).lstrip("/")


def _print_json(verification: Verification, seconds: float) -> None:
    findings, counts = verification.findings, verification.counts
    for finding in findings.kept:
        print_json(
            {
                "type": "finding",
                "severity": finding.severity.value,
                "file": finding.path,
                "position": finding.position,
                "offset": finding.offset,
                "what": finding.what,
                "advice": finding.advice,
            }
        )
    print_json(
        {
            "type": "summary",
            "directory": verification.root,
            "clean_shutdown": verification.is_clean,
            "broker_running": verification.is_running,
            "partitions": counts.partitions,
            "segments": counts.segments,
            "batches": counts.batches,
            "records": counts.records,
            "bytes": counts.size_bytes,
            "milliseconds": round(seconds * 1000),
            "errors": findings.errors,
            "warnings": findings.warnings,
            "not_shown": dict(findings.not_kept),
        }
    )
