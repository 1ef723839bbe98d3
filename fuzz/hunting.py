"""One target under atheris, in a process of its own: `python -m fuzz` starts it as `python -m fuzz.hunting`.

Owns what is instrumented: all of Lamina, and the parsers that it compiles as it runs. libFuzzer ends the process, with
statuses of its own.
"""

import logging
import sys
from pathlib import Path

import atheris

from fuzz.compiled import compiled_modules
from fuzz.targets import load

_SOURCES = Path(__file__).parents[1] / "src"


def main(target: str, flags: list[str]) -> None:
    with atheris.instrument_imports(include=["lamina"], exclude=list(compiled_modules(_SOURCES))):
        from lamina.wire import parser

        compile_plainly = parser._Source.compile
        parser._Source.compile = lambda *args: atheris.instrument_func(compile_plainly(*args))  # type: ignore[method-assign]
        one = load(target)
        logging.disable()  # millions of runs, each with its warnings; a replay shows them
        atheris.Setup([target, *flags], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
