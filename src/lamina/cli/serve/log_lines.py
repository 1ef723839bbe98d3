"""How a running broker logs: plain lines, or JSON objects, on standard error.

Must not know who logs.
"""

import json
import logging
import os
import sys
from datetime import UTC, datetime

import click

from lamina.cli.serve.audit_queue import AuditQueue

AUDIT = "lamina.audit"
_PRIVATE = 0o600
_COLOURS = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "red"}


class PlainLines(logging.Formatter):
    """Time in UTC, level, message; a traceback follows on lines of its own."""

    def __init__(self, *, is_coloured: bool) -> None:
        super().__init__()
        self._is_coloured = is_coloured

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower().ljust(8)
        if self._is_coloured and record.levelno in _COLOURS:
            level = click.style(level, fg=_COLOURS[record.levelno])
        line = f"{_time(record)} {level} {record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """``time``, ``level``, ``logger``, ``message``, and ``traceback`` if there is one; the audit has its own."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        # What is an object already is told as one.
        fields |= getattr(record, "told", None) or {"message": record.getMessage()}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def start_logging(*, as_json: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else PlainLines(is_coloured=sys.stderr.isatty()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)


def log_audit(path: str | None) -> None:
    """Write the audit there, and nowhere else: one object on each line. Raises OSError.

    A file that another program moves away, to rotate it, is made again. Only its owner reads it. Without a path the
    audit is where all else is logged.
    """
    if path is None:
        (target,) = logging.getLogger().handlers
    else:
        from logging.handlers import WatchedFileHandler

        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, _PRIVATE))
        target = WatchedFileHandler(path, encoding="utf-8")
        target.setFormatter(JsonLines())
    audit = logging.getLogger(AUDIT)
    audit.handlers[:] = [AuditQueue(target)]
    audit.propagate = False


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
