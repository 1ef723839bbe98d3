"""Numbers and words among Kafka's client properties, which come as text.

Must not know which properties there are: those who honour them do.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

MAX_INT: Final = 2**31 - 1

T = TypeVar("T")


def whole_number(
    refusal: type[Exception],
    given: Mapping[str, str],
    name: str,
    default: int,
    *,
    least: int = 0,
    most: int = MAX_INT,
) -> int:
    """The value of a property. Raises ``refusal``, with the property's name, for one that is no number in its range."""
    text = given.get(name)
    if text is None:
        return default
    try:
        number = int(text.strip())
    except ValueError:
        raise refusal(f"{name}: {text!r} is not a whole number") from None
    if not least <= number <= most:
        raise refusal(f"{name}: {number} is not between {least} and {most}")
    return number


def one_of(refusal: type[Exception], given: Mapping[str, str], name: str, default: str, words: Mapping[str, T]) -> T:
    """What the word of a property means. Raises ``refusal``, with the property's name, for one that means nothing."""
    text = given.get(name, default).strip().lower()
    if text not in words:
        raise refusal(f"{name}: {text!r} is not one of {', '.join(words)}")
    return words[text]
