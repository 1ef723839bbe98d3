"""What becomes of changes to SCRAM's users (S40, S43)."""

import pytest

from lamina.errors import ErrorCode
from lamina.security.scram_credential import ScramCredential, ScramMechanism, credential_from
from lamina.security.scram_users import Deletion, Upsertion, Users, alter_users

SHA_256, SHA_512 = ScramMechanism
KEPT = ScramCredential(b"salt", b"stored", b"server", 4096)
USERS: Users = {"alice": {SHA_256: KEPT, SHA_512: KEPT}, "bob": {SHA_512: KEPT}}


def upsertion(user: str = "carol", mechanism: int = 1, iterations: int = 8192) -> Upsertion:
    return Upsertion(user, mechanism, iterations, b"salt", b"salted secret")


def codes(*changes: Deletion | Upsertion) -> dict[str, int]:
    deletions = [one for one in changes if isinstance(one, Deletion)]
    altered = alter_users(USERS, deletions, [one for one in changes if isinstance(one, Upsertion)])
    failed = {user for user, error in altered.errors.items() if error is not None}
    assert not failed & set(altered.changed), "nothing is done for it"
    return {user: 0 if error is None else int(error.code) for user, error in altered.errors.items()}


def test_a_password_is_kept_as_rfc_5802_says() -> None:
    changed, errors = alter_users(USERS, (), [upsertion()])
    assert errors == {"carol": None}
    assert changed == {"carol": {SHA_256: credential_from("sha256", b"salted secret", b"salt", 8192)}}


def test_a_new_password_replaces_one_mechanism_alone() -> None:
    changed, _ = alter_users(USERS, (), [upsertion("alice", 2)])
    assert changed["alice"][SHA_256] == KEPT
    assert changed["alice"][SHA_512].iterations == 8192


def test_a_deletion_leaves_the_other_mechanism() -> None:
    assert alter_users(USERS, [Deletion("alice", 1)], ()).changed == {"alice": {SHA_512: KEPT}}
    assert alter_users(USERS, [Deletion("bob", 2)], ()).changed == {"bob": {}}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (Deletion("", 1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(iterations=16_385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(iterations=4096), ErrorCode.NONE),
        (upsertion(iterations=16_384), ErrorCode.NONE),
        (upsertion(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (Deletion("alice", 9), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (Deletion("nobody", 1), ErrorCode.RESOURCE_NOT_FOUND),
        (Deletion("bob", 1), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_what_is_not_taken(change: Deletion | Upsertion, code: ErrorCode) -> None:
    assert codes(change) == {change.user: code}


@pytest.mark.parametrize(
    "changes",
    [
        (upsertion("alice"), upsertion("alice")),
        (upsertion("alice", 1), upsertion("alice", 2)),
        (Deletion("alice", 1), upsertion("alice", 1)),
        (Deletion("alice", 1), Deletion("alice", 2)),
    ],
)
def test_who_is_named_twice_is_left_alone_and_the_others_are_changed(changes: tuple[Deletion | Upsertion, ...]) -> None:
    assert codes(*changes, upsertion("carol")) == {"alice": ErrorCode.DUPLICATE_RESOURCE, "carol": 0}


def test_no_representation_shows_a_salted_password() -> None:
    assert "secret" not in repr(upsertion())
