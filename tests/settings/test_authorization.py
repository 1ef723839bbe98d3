import pytest

from lamina.settings.authorization import ACL_AUTHORIZER, AUTHORIZER_CLASS_NAME, STANDARD_AUTHORIZER, principals
from lamina.settings.definition import SettingError
from lamina.settings.resolve import resolve_broker


@pytest.mark.parametrize("name", [STANDARD_AUTHORIZER, ACL_AUTHORIZER])
def test_kafkas_names_of_authorizers_are_taken(name: str) -> None:
    assert resolve_broker(file={"authorizer.class.name": name})[AUTHORIZER_CLASS_NAME] == name


def test_another_class_is_refused_with_those_there_are() -> None:
    with pytest.raises(SettingError, match=r"must be .*StandardAuthorizer or .*AclAuthorizer"):
        resolve_broker(file={"authorizer.class.name": "example.Authorizer"})


def test_super_users_are_divided_by_semicolons_s48() -> None:
    assert principals("User:a; User:CN=b,O=c ;") == ("User:a", "User:CN=b,O=c")


@pytest.mark.parametrize("text", ["alice", "User:a;bob", ":x", "User:", "User:a,User:b", "User:a, User:b;User:c"])
def test_super_users_have_types_s48(text: str) -> None:
    with pytest.raises(SettingError, match=r"super.users = .*: must be principals such as User:admin"):
        resolve_broker(file={"super.users": text})


CHECKED = {"authorizer.class.name": STANDARD_AUTHORIZER}


def test_an_authorizer_that_lets_nobody_begin_is_warned_of() -> None:
    (told,) = resolve_broker(file=CHECKED).warnings
    assert told == (
        "super.users: names nobody: while there are no access rules nobody may do anything, not even add the first "
        "rule; name an administrator, such as super.users=User:admin"
    )


@pytest.mark.parametrize(
    "given", [{}, CHECKED | {"super.users": "User:a"}, CHECKED | {"allow.everyone.if.no.acl.found": "true"}]
)
def test_where_somebody_may_begin_nothing_is_warned_of(given: dict[str, str]) -> None:
    assert resolve_broker(file=given).warnings == ()
