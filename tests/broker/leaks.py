"""Whether a broker forgets who has gone: the objects of Lamina that are alive in this process, counted by kind."""

import gc
from collections import Counter
from collections.abc import Callable

from tests.broker.process import eventually


def check_forgotten(visit: Callable[[], None], *, visits: int, seconds: float = 30) -> None:
    """After many visits no kind of object is there more often than before them, but for a few that come and go anyway.

    One object of a kilobyte that stays for every visitor would be lost in the memory of a process; here it is counted.
    """
    for _ in range(visits // 10):
        visit()  # What is made once, and on first use, does not count.
    before = _alive()
    for _ in range(visits):
        visit()

    def grown() -> Counter[str]:
        return Counter({kind: count for kind, count in (_alive() - before).items() if count >= visits // 10})

    eventually(lambda: not grown(), seconds, grown)


def _alive() -> Counter[str]:
    gc.collect()
    return Counter(
        f"{type(one).__module__}.{type(one).__qualname__}"
        for one in gc.get_objects()
        if str(type(one).__module__).startswith("lamina.")
    )
