"""Who may do what through the admin listener: the roles, and which token or certificate has which.

Owns what a route asks for and whether a request has it. A viewer sees everything, an operator changes it too. Where
clients of the broker do not log in, whoever reaches the listener may see what is not about records. Must not know HTTP.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum

from lamina.broker.admin.token import ADMIN_TOKEN, VARIABLE, VIEWER_TOKEN, VIEWER_VARIABLE, Token, find_token
from lamina.settings.admin_access import is_reading_open
from lamina.settings.authorization import principals
from lamina.settings.network import LAMINA_ADMIN_OPERATORS, LAMINA_ADMIN_VIEWERS
from lamina.settings.values import BrokerSettings


class Role(IntEnum):
    """The higher one may do what the lower one may."""

    NOBODY = 0
    VIEWER = 1
    OPERATOR = 2


class Need(Enum):
    """What a route asks for."""

    NOTHING = "nothing"
    """For whatever looks whether the broker is well."""
    READING = "reading"
    """A viewer, or anybody where reading is open."""
    RECORDS = "records"
    """A viewer, always."""
    CHANGING = "changing"
    """An operator, always."""


@dataclass(frozen=True, slots=True)
class Access:
    operator: Token | None
    viewer: Token | None
    is_reading_open: bool
    operators: frozenset[str] = frozenset()
    """Principals whose certificates make them what the token makes others."""
    viewers: frozenset[str] = frozenset()

    def allows(self, need: Need, given: str | None, principal: str | None = None) -> bool:
        """``given`` is the token that came with the request, ``principal`` whoever has shown a certificate."""
        if need is Need.NOTHING or (need is Need.READING and self.is_reading_open):
            return True
        role = Role.NOBODY if given is None else self._role_of(given)
        if principal is not None:
            role = max(role, self._role_of_principal(principal))
        return role >= (Role.OPERATOR if need is Need.CHANGING else Role.VIEWER)

    def _role_of_principal(self, principal: str) -> Role:
        if principal in self.operators:
            return Role.OPERATOR
        return Role.VIEWER if principal in self.viewers else Role.NOBODY

    def _role_of(self, given: str) -> Role:
        """Both tokens are looked at, whichever it is."""
        is_operator = self.operator is not None and self.operator.matches(given)
        is_viewer = self.viewer is not None and self.viewer.matches(given)
        if is_operator:
            return Role.OPERATOR
        return Role.VIEWER if is_viewer else Role.NOBODY


NO_ACCESS = Access(None, None, is_reading_open=False)


def find_access(settings: BrokerSettings, data_directory: str) -> Access:
    """That of this broker, with its tokens, which are made at its first start."""
    return Access(
        find_token(data_directory, ADMIN_TOKEN, VARIABLE),
        find_token(data_directory, VIEWER_TOKEN, VIEWER_VARIABLE),
        is_reading_open(settings),
        frozenset(principals(settings[LAMINA_ADMIN_OPERATORS])),
        frozenset(principals(settings[LAMINA_ADMIN_VIEWERS])),
    )


def why_refused(need: Need) -> str:
    """What to do about it."""
    where = f"{ADMIN_TOKEN} in the broker's data directory, or in {VARIABLE}"
    if need is not Need.CHANGING:
        where = f"{VIEWER_TOKEN} or {ADMIN_TOKEN} in the broker's data directory, or in {VIEWER_VARIABLE} or {VARIABLE}"
    return (
        f"this needs the header Authorization: Bearer TOKEN, with the token in {where} where the broker was given one"
    )
