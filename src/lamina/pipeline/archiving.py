"""``python -m lamina.pipeline.archiving DIRECTORY``: run Spark once so that Java can write its class archive.

Takes half a minute and gives way to everything else; started when an idle engine was stopped. Exits when its standard
input is closed, leaving nothing. Must not know the broker's settings: the classes that Spark loads do not depend on
them.
"""

import os
import shutil
import sys
import threading
from pathlib import Path

from lamina.cleaning.limits import lower_priority
from lamina.pipeline.class_archive import archive_path, write_archive
from lamina.pipeline.java import find_java
from lamina.pipeline.session import Session
from lamina.pipeline.tasks import describe_worker


def make_archive(directory: str, session: Session) -> None:
    path = archive_path(directory, find_java())
    if path.exists():
        return
    partial = Path(f"{path}.partial")
    session.open(write_archive(partial))
    session.context.parallelize(range(2), 2).map(describe_worker).collect()
    session.finish()
    for stale in set(Path(directory).glob("classes-*")) - {partial}:
        stale.unlink()
    if partial.exists():
        os.replace(partial, path)


def main() -> None:
    directory = sys.argv[1]
    lower_priority()
    session = Session("local[2]", {}, f"{directory}/archiving")

    def die_with_the_broker() -> None:
        sys.stdin.buffer.read()
        session.kill()
        shutil.rmtree(session.directory, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=die_with_the_broker, daemon=True).start()
    try:
        make_archive(directory, session)
    finally:
        session.kill()
        shutil.rmtree(session.directory, ignore_errors=True)


if __name__ == "__main__":
    main()
