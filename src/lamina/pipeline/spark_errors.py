"""Why Spark does not start, or a job failed as a whole: one sentence, without Java's stack trace.

Must not know what the job was about.
"""

import errno
import re
from typing import Any

from py4j.protocol import Py4JJavaError, Py4JNetworkError

_LONGEST = 400
_FULL = "No space left on device"
_NOISE = re.compile(r"\s+")


class SparkEnded(Exception):
    """The JVM has ended, or its cluster has removed the application, and with it all that was under way."""


class MasterSilent(Exception):
    """The master of a cluster does not answer."""


def has_ended(error: BaseException) -> bool:
    """Whether a job failed because its JVM has ended."""
    return isinstance(error, Py4JNetworkError | ConnectionError | EOFError)


def sentence_of(error: BaseException) -> str:
    if _is_full(error):
        return "Spark's scratch disk is full (lamina.spark.conf.spark.local.dir names another)"
    if isinstance(error, Py4JJavaError):
        return f"Spark failed the pass: {_short(str(error.java_exception.getMessage()))}"
    return f"the pass failed unexpectedly: {type(error).__name__}: {_short(str(error))}"


def end_sentence(error: BaseException, master: str) -> str:
    """Why there is no Spark any more."""
    if isinstance(error, Py4JJavaError):
        said = _short(str(error.java_exception.getMessage()))
        return f"{master} is gone, or has removed the application in the middle of a pass: {said}"
    return "Spark ended in the middle of a pass"


def start_sentence(error: BaseException, master: str) -> str:
    """Why there is no Spark."""
    said = _causes(error.java_exception) if isinstance(error, Py4JJavaError) else _short(str(error))
    return f"Spark could not be started on {master}: {said or type(error).__name__}"


def _is_full(error: BaseException) -> bool:
    if isinstance(error, Py4JJavaError):
        return _FULL in str(error.java_exception.getMessage())
    return isinstance(error, OSError) and error.errno == errno.ENOSPC


def _causes(exception: Any) -> str:
    """The first thing that an exception of Java's says, and the last: what it came of."""
    said: list[str] = []
    while exception is not None:
        message = exception.getMessage()
        said.append(_short(str(message)) if message else str(exception.getClass().getSimpleName()))
        exception = exception.getCause()
    return said[0] if said[-1] in said[0] else f"{said[0]}: {said[-1]}"


def _short(said: str) -> str:
    """The first lines up to where the stack begins."""
    told = said.split("\n\tat ")[0].split("\nDriver stacktrace")[0].split("\nThis stopped SparkContext was")[0]
    plain = _NOISE.sub(" ", told).strip()
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "…"
