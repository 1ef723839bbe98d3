"""A file of Java's that halves its start: the classes that Spark loads, kept ready (class-data sharing).

Owns the file: one for each Java and each set of Spark's jars, in the engine's directory. Without it, or with one that
does not fit, Java only starts more slowly. Must not know how it is made.
"""

import hashlib
import os
from pathlib import Path

from lamina.pipeline.gateway import spark_home
from lamina.pipeline.java import Java

_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


def archive_path(directory: str, java: Java) -> Path:
    """Java refuses an archive of another Java or of other jars; by its name it is not even tried."""
    marks = [os.path.realpath(java.path), str(os.stat(java.path).st_mtime_ns)]
    marks += [f"{jar} {jar.stat().st_mtime_ns}" for jar in sorted(Path(spark_home(), "jars").glob("*.jar"))]
    name = hashlib.sha256("\n".join(marks).encode()).hexdigest()[:16]
    return Path(directory, f"classes-{name}.jsa")


def use_archive(directory: str, java: Java) -> tuple[str, ...]:
    """What Java is told, if there is one."""
    path = archive_path(directory, java)
    return (f"-XX:SharedArchiveFile={path}", *_QUIET) if path.exists() else ()


def write_archive(path: Path) -> tuple[str, ...]:
    """What Java is told to leave one at its end."""
    return (f"-XX:ArchiveClassesAtExit={path}", *_QUIET)
