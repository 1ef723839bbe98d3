"""How long one look at the access rules takes: ``python -m bench.acls``.

10,000 rules, of many users, on names and on prefixes. A first look-up finds a decision that nobody has asked for, a
repeated one what was decided before.
"""

import logging
import random
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from lamina.broker.counters import RequestCounters
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.request import Request
from lamina.clocks import SYSTEM_CLOCKS
from lamina.image.image import Image
from lamina.security.access_index import AccessIndex
from lamina.security.acls import AccessRule, Operation, PatternType, Permission, ResourcePattern, ResourceType

RULES = 10_000
LOOKS = 20_000
ROUNDS = 20


def rules(seed: int) -> dict[ResourcePattern, frozenset[AccessRule]]:
    drawn = random.Random(seed)
    found: dict[ResourcePattern, frozenset[AccessRule]] = {}
    while sum(map(len, found.values())) < RULES:
        kind = PatternType.PREFIXED if drawn.random() < 0.5 else PatternType.LITERAL
        name = f"team-{drawn.randrange(500)}." + (f"topic-{drawn.randrange(5000)}" if drawn.random() < 0.9 else "")
        rule = AccessRule(
            f"User:{drawn.randrange(300)}",
            "*" if drawn.random() < 0.8 else f"10.0.0.{drawn.randrange(250)}",
            drawn.choice([Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL]),
            Permission.DENY if drawn.random() < 0.05 else Permission.ALLOW,
        )
        pattern = ResourcePattern(ResourceType.TOPIC, name, kind)
        found[pattern] = found.get(pattern, frozenset()) | {rule}
    return found


def timed_us(look: Callable[[int], Any]) -> float:
    """Of the processor's time, for one look, in the best of some rounds: others use this machine too."""
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for number in range(LOOKS):
            look(number)
        taken.append((time.process_time() - began) / LOOKS * 1e6)
    return min(taken)


def main() -> None:
    logging.getLogger("lamina.audit").setLevel(logging.CRITICAL)
    acls = rules(1)
    image = Image("bench")
    index = AccessIndex(["User:admin"])
    authorizer = Authorizer(index, lambda: image, SYSTEM_CLOCKS)
    began = time.perf_counter()
    authorizer.rules_changed(acls, acls)
    sys.stdout.write(f"{RULES} rules indexed in {(time.perf_counter() - began) * 1e3:.1f} ms\n")
    client = cast(Any, SimpleNamespace(principal="User:7", host="10.0.0.7", listener_name="PLAINTEXT"))
    request = Request(0, 9, 1, "bench", client, RequestCounters("Produce", 9))
    drawn = random.Random(2)
    names = [f"team-{drawn.randrange(500)}.topic-{drawn.randrange(5000)}.{number}" for number in range(LOOKS)]
    nothing = timed_us(lambda number: names[number])

    # As the handlers of records do: an enumeration's member takes as long to look up as a decision.
    write, topic = Operation.WRITE, ResourceType.TOPIC

    def first(number: int) -> bool:
        return index.allows("User:7", "10.0.0.7", write, topic, names[number])

    def repeated(_: int) -> bool:
        return authorizer.allows(request, write, topic, "orders")

    more = {ResourcePattern(ResourceType.TOPIC, "orders", PatternType.LITERAL): allow()}
    authorizer.rules_changed(more, acls | more)
    repeated(0)
    sys.stdout.write(f"first look-up {timed_us(first) - nothing:.2f} µs (at most 2)\n")
    sys.stdout.write(f"repeated look-up {timed_us(repeated) - nothing:.2f} µs (at most 0.2)\n")


def allow() -> frozenset[AccessRule]:
    return frozenset([AccessRule("User:7", "*", Operation.WRITE, Permission.ALLOW)])


if __name__ == "__main__":
    main()
