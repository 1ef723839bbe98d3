"""The topic that was probably meant, where a broker's admin listener knows none of that name.

Must not know what was asked of it.
"""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager

from lamina.client.admin_listener import AdminListener, NotThere
from lamina.client.errors import ClientError


@contextmanager
def suggesting_topics(listener: AdminListener, topic: str) -> Iterator[None]:
    try:
        yield
    except NotThere as error:
        known = [row["name"] for row in listener.pages("topics", "v1", "topics")]
        near = [] if topic in known else difflib.get_close_matches(topic, known, n=1)
        if not near:
            raise
        raise ClientError(f"{error}; did you mean {near[0]}?") from error
