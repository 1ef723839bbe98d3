"""How many examples a property test draws: all of them in ``make faults``, where they are new ones each time; a part in
``make test``, where they are always the same."""

from hypothesis import settings


def examples(count: int) -> int:
    return max(count // 5, 20) if settings.default is not None and settings.default.derandomize else count
