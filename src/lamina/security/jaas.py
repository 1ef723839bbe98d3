"""A JAAS entry, as Kafka's ``sasl.jaas.config`` has it: ``class flag key="value" ... ;`` (S39).

Owns the syntax, which is that of Java's tokenizer: words, strings in either kind of quotes with backslash escapes,
``//`` and ``/* */``. Values are mostly passwords: no error and no ``repr`` shows one. Must not know which classes there
are, nor load any.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

FLAGS = ("required", "requisite", "sufficient", "optional")

_TOKEN = re.compile(
    r"""[\x00-\x20]+ | //[^\r\n]* | /\*(?:[^*]|\*(?!/))*\*/
    | (?P<word>[A-Za-z_$\x80-\U0010ffff][A-Za-z0-9_$.\x80-\U0010ffff-]*)
    | (?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*"|'(?:[^'\\\r\n]|\\[^\r\n])*')
    | (?P<mark>[=;{}])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_READ_AS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """Text that is not one JAAS entry; the message shows no value."""


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module with its options."""

    login_module: str
    """The name of a Java class."""
    flag: str
    options: Mapping[str, str] = field(repr=False)


def read_jaas(text: str) -> JaasEntry:
    """The one entry that the text has."""
    tokens = _tokens(text)
    login_module = next(tokens)
    if login_module.kind not in ("word", "string"):
        raise JaasError("must begin with the name of a login module")
    flag = next(tokens)
    if flag.kind not in ("word", "string") or flag.text.lower() not in FLAGS:
        raise JaasError(f"after the login module must come one of {', '.join(FLAGS)}")
    options: dict[str, str] = {}
    while (key := next(tokens)).text != ";" or key.kind != "mark":
        if key.kind == "end":
            raise JaasError("must end with a semicolon")
        if key.kind == "mark":
            raise JaasError(f'character {key.at + 1}: an option must have the form key="value"')
        sign, value = next(tokens), next(tokens)
        if sign.text != "=" or sign.kind != "mark" or value.kind not in ("word", "string"):
            raise JaasError(f'character {key.at + 1}: an option must have the form key="value"')
        options[key.text] = value.text
    if next(tokens).kind != "end":
        raise JaasError("must have one login module, not several")
    return JaasEntry(login_module.text, flag.text.lower(), MappingProxyType(options))


class _Token(NamedTuple):
    kind: str
    """``word``, ``string``, ``mark``, or ``end`` for ever after the last."""
    text: str
    at: int


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise JaasError(f"character {at + 1}: not understood; values stand in double quotes, on one line")
        kind = match.lastgroup
        if kind == "string":
            yield _Token(kind, _ESCAPE.sub(_unescape, match.group()[1:-1]), at)
        elif kind is not None:
            yield _Token(kind, match.group(), at)
        at = match.end()
    while True:
        yield _Token("end", "", at)


def _unescape(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped[0] in "01234567":
        return chr(int(escaped, 8))
    return _READ_AS.get(escaped, escaped)
