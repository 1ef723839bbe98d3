"""What is fuzzed: a module for each target, with ``one(data)``.

``one`` takes any bytes at all. It lets the exceptions that the code documents pass and asserts what must hold for
input that is accepted; any other exception is a finding. Nothing here needs a fuzzer: `make test` runs the corpus
through the same functions.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

TARGETS = tuple(sorted(module.name for module in iter_modules(__path__)))


def load(target: str) -> Callable[[bytes], None]:
    one: Callable[[bytes], None] = import_module(f"{__name__}.{target}").one
    return one
