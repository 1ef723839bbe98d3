"""How the name in a client's certificate becomes its principal: ``ssl.principal.mapping.rules``.

Owns the form of the rules and what they make of a name, as Kafka does (S19): the first whose pattern matches the
whole name holds. Must not know certificates.
"""

import re
from dataclasses import dataclass

DEFAULT_RULES = "DEFAULT"

_PART = r"(?:\\.|[^\\/])*"
_RULE = re.compile(rf"(DEFAULT)|RULE:({_PART})/({_PART})/([LU]?)")
_BETWEEN = re.compile(r"\s*(?:,\s*|$)")
_REFERENCE = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)
_JAVA_GROUP_NAME = re.compile(r"\(\?<(?=[A-Za-z])")


class RuleError(ValueError):
    """Rules that cannot be followed; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class PrincipalRule:
    """``pattern`` is ``None`` for the rule that takes every name as it is."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """``None`` for a name that the rule does not match."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(self._replace, name)
        if self.case == "L":
            return result.lower()
        return result.upper() if self.case == "U" else result

    def _replace(self, match: re.Match[str]) -> str:
        """A group that the pattern does not have stays as it is written."""

        def referred(reference: re.Match[str]) -> str:
            if reference[1] is not None:
                return reference[1]
            digits, groups = reference[2], match.re.groups
            # As in Java, a number is as long as there are groups of that number.
            for length in range(len(digits), 0, -1):
                number = int(digits[:length])
                if number <= groups:
                    return (match[number] or "") + digits[length:]
            return reference[0]

        return _REFERENCE.sub(referred, self.replacement)


def parse_rules(text: str) -> tuple[PrincipalRule, ...]:
    """Raises :class:`RuleError`."""
    text = text.strip()
    rules: list[PrincipalRule] = []
    position = 0
    while position < len(text):
        match = _RULE.match(text, position)
        end = None if match is None else _BETWEEN.match(text, match.end())
        if match is None or end is None:
            raise RuleError("must be a comma-separated list of DEFAULT and RULE:pattern/replacement/[LU]")
        rules.append(PrincipalRule() if match[1] else _rule(match[2], match[3], match[4]))
        position = end.end()
    return tuple(rules)


def _rule(pattern: str, replacement: str, case: str) -> PrincipalRule:
    try:
        compiled = re.compile(_JAVA_GROUP_NAME.sub("(?P<", pattern))
    except re.error as error:
        raise RuleError(f"RULE:{pattern}/: is not a regular expression: {error}") from None
    return PrincipalRule(compiled, replacement, case)


def map_name(rules: tuple[PrincipalRule, ...], name: str) -> str | None:
    """What the first rule that matches makes of a name; ``None`` when none matches."""
    return next((mapped for rule in rules if (mapped := rule.apply(name)) is not None), None)
