"""What to say of a Spark job that failed as a whole: one sentence, without Java's stack.

Must not know what the job was about.
"""

import re

from py4j.protocol import Py4JJavaError, Py4JNetworkError

_LONGEST = 400
_NOISE = re.compile(r"\s+")


class SparkEnded(Exception):
    """Java is gone, and with it all that was under way."""


def has_ended(error: BaseException) -> bool:
    """Whether a job failed because there is nobody any more to run it."""
    return isinstance(error, Py4JNetworkError | ConnectionError | EOFError)


def sentence_of(error: BaseException) -> str:
    if isinstance(error, Py4JJavaError):
        said = str(error.java_exception.getMessage())
        if "No space left on device" in said:
            return "Spark's scratch disk is full (lamina.spark.conf.spark.local.dir names another)"
        return f"Spark failed the pass: {_short(said)}"
    return f"the pass failed unexpectedly: {type(error).__name__}: {_short(str(error))}"


def _short(said: str) -> str:
    """The first lines up to where the stack begins."""
    told = said.split("\n\tat ")[0].split("\nDriver stacktrace")[0]
    plain = _NOISE.sub(" ", told).strip()
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "…"
