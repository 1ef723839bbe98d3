"""Changing SCRAM's users: what an administrator asks for, and what becomes of it (S43).

Owns which changes are taken; each user is changed or left alone by itself. Must not know where users are kept, nor any
message.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamina.errors import (
    DuplicateResource,
    KafkaError,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
)
from lamina.security.scram_credential import (
    LEAST_ITERATIONS,
    MOST_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    credential_from,
)

Users = Mapping[str, Mapping[ScramMechanism, ScramCredential]]


class Deletion(NamedTuple):
    """``mechanism`` is a number, maybe of none that there is."""

    user: str
    mechanism: int


class Upsertion(NamedTuple):
    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"Upsertion({self.user!r}, hidden)"


class AlteredUsers(NamedTuple):
    changed: Users
    """What they have from now on; nothing at all removes one."""
    errors: Mapping[str, KafkaError | None]
    """By user, in the order in which they were named."""


def alter_users(users: Users, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]) -> AlteredUsers:
    """Each user may be named once, by whatever mechanism."""
    changes: list[Deletion | Upsertion] = [*deletions, *upsertions]
    named = Counter(change.user for change in changes)
    changed: dict[str, Mapping[ScramMechanism, ScramCredential]] = {}
    errors: dict[str, KafkaError | None] = {}
    for change in changes:
        try:
            if named[change.user] > 1:
                raise DuplicateResource(f"user {change.user!r} is named more than once")
            changed[change.user] = _changed(users.get(change.user, {}), change)
            errors[change.user] = None
        except KafkaError as error:
            errors[change.user] = error.without_frames()
    return AlteredUsers(changed, errors)


def _changed(
    credentials: Mapping[ScramMechanism, ScramCredential], change: Deletion | Upsertion
) -> Mapping[ScramMechanism, ScramCredential]:
    if not change.user:
        raise UnacceptableCredential("a user's name must not be empty")
    try:
        mechanism = ScramMechanism(change.mechanism)
    except ValueError:
        raise UnsupportedSaslMechanism(f"there is no SCRAM mechanism of number {change.mechanism}") from None
    if isinstance(change, Deletion):
        if mechanism not in credentials:
            raise ResourceNotFound(f"user {change.user!r} has no password for {mechanism.sasl_name}")
        return {one: credential for one, credential in credentials.items() if one is not mechanism}
    if not LEAST_ITERATIONS <= change.iterations <= MOST_ITERATIONS:
        raise UnacceptableCredential(
            f"{change.iterations} iterations: there must be at least {LEAST_ITERATIONS} and at most {MOST_ITERATIONS}"
        )
    credential = credential_from(mechanism.digest, change.salted_password, change.salt, change.iterations)
    return {**credentials, mechanism: credential}
