"""What can go wrong between a value and its schema. Must not know who asks."""

_LONGEST = 300


class RegistryError(Exception):
    """The registry, or an option, is of no use: nothing can be decoded. The sentence says what to do."""


class NotDecodable(ValueError):
    """This one value cannot be decoded; the sentence says why. Others can."""


def in_short(text: object) -> str:
    """What somebody else said, on one line, and no longer than a line or two."""
    line = " ".join(str(text).split()).rstrip(".")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
