"""Java's ``.properties`` text, as Kafka's ``server.properties`` and ``meta.properties`` have it.

Owns the syntax in both directions: comments (``#``, ``!``), lines continued by a backslash, ``=``, ``:`` or
white space between name and value, escapes. A name given twice has its last value, as in Java. What ``dump``
writes, ``load`` reads back, and so does Java. A file that a person names may be another than the one that was meant,
such as a private key: ``load_given`` refuses it, and repeats nothing of it. Must not know any setting.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

BLANKS = " \t\f"

_LINE_END = re.compile(r"\r\n|\r|\n")
_NAME = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.|\Z)", re.DOTALL)
_BARE_NAME = re.compile(r"[a-z]\w*(\.[\w-]+)+")
"""What may stand without a value, and so is empty as in Java: no line of a key has dots."""
_PEM = "-----"
"""How its first line begins, and its last."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPECIAL = re.compile(r"[\\=:#!]|[^ -~]")
_SPECIAL_OR_BLANK = re.compile(r"[\\=:#! ]|[^ -~]")
_READ_AS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "": ""}
_WRITTEN_AS = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


class PropertiesError(ValueError):
    """Text that is not properties; the message names the line."""


def load(data: bytes) -> dict[str, str]:
    """Names and values in the order of their first mention; the bytes are UTF-8, else Latin-1."""
    found: dict[str, str] = {}
    for number, line in _logical_lines(_decode(data)):
        name = _NAME.match(line)
        assert name is not None, "an empty name matches"
        separator = _SEPARATOR.match(line, name.end())
        assert separator is not None, "an empty separator matches"
        found[_unescape(name.group(), number)] = _unescape(line[separator.end() :], number)
    return found


def load_given(data: bytes) -> dict[str, str]:
    """The same of a file that a person named. Raises `PropertiesError` for one that cannot have been meant.

    A name alone is taken where it looks like a setting's.
    """
    for number, line in _logical_lines(_decode(data)):
        if line.startswith(_PEM):
            raise PropertiesError(f"line {number}: this is PEM, a key or a certificate, and no file of properties")
        name = _NAME.match(line)
        assert name is not None, "an empty name matches"
        if not name.group().isprintable() or (name.end() == len(line) and not _BARE_NAME.fullmatch(line)):
            raise PropertiesError(f"line {number}: NAME=VALUE is expected; nothing of this file was used")
    return load(data)


def dump(properties: Mapping[str, str], comments: Sequence[str] = ()) -> bytes:
    """ASCII text with the comments first, one line for each entry."""
    lines = [f"#{line}" for comment in comments for line in _LINE_END.split(_escape_foreign(comment))]
    lines += [f"{_escape(name, is_name=True)}={_escape(value)}" for name, value in properties.items()]
    return "".join(line + "\n" for line in lines).encode("ascii")


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, under the number of the first; no comments, no blank ones."""
    parts: list[str] = []
    first = 0
    for number, natural in enumerate(_LINE_END.split(text), start=1):
        line = natural.lstrip(BLANKS)
        # Only where a line begins; as in Java, one that has so far been nothing but a backslash still does.
        if not any(parts):
            parts.clear()
            if line.startswith(("#", "!")):
                continue
            first = number
        # A backslash that is itself escaped does not continue the line.
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        parts.append(line[:-1] if is_continued else line)
        if not is_continued:
            if joined := "".join(parts):
                yield first, joined
            parts.clear()
    if joined := "".join(parts):
        yield first, joined


def _unescape(text: str, number: int) -> str:
    def read(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape == "u":
            raise PropertiesError(f"line {number}: \\u must be followed by four hexadecimal digits")
        return chr(int(escape[1:], 16)) if len(escape) == 5 else _READ_AS.get(escape, escape)

    plain = _ESCAPE.sub(read, text)
    if not _SURROGATE.search(plain):
        return plain
    # Java's strings are UTF-16: a character above U+FFFF is written as two escapes.
    try:
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise PropertiesError(f"line {number}: half of a surrogate pair is missing") from None


def _escape(text: str, *, is_name: bool = False) -> str:
    escaped = (_SPECIAL_OR_BLANK if is_name else _SPECIAL).sub(lambda match: _escape_one(match.group()), text)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escape_foreign(text: str) -> str:
    return re.sub(r"[^ -~\r\n]", lambda match: _escape_one(match.group()), text)


def _escape_one(character: str) -> str:
    if character in _WRITTEN_AS:
        return _WRITTEN_AS[character]
    if " " <= character <= "~":
        return f"\\{character}"
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2))
