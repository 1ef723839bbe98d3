"""Where a registry is, as a person says it."""

import pickle
from pathlib import Path

import pytest

from lamina.schema_registry.errors import RegistryError
from lamina.schema_registry.location import Location, parse_location

URL = "http://localhost:8081"


def test_a_plain_url() -> None:
    assert parse_location(f" {URL}/ ", {}) == Location(URL)
    assert parse_location("https://registry/apis/ccompat/v7", {"timeout": "2.5", "max.retries": "0"}) == Location(
        "https://registry/apis/ccompat/v7", timeout_seconds=2.5, retries=0
    )


def test_a_login_is_not_shown() -> None:
    location = parse_location(URL, {"basic.auth.user.info": "ann:secret"})
    assert location.authorization == "Basic YW5uOnNlY3JldA=="
    assert "YW5u" not in repr(location)
    assert pickle.loads(pickle.dumps(location)) == location


def test_certificates_go_along(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("-----BEGIN CERTIFICATE-----\n")
    assert parse_location(URL, {"ssl.ca.location": str(file)}).certificates == file.read_text()


@pytest.mark.parametrize(
    ("url", "options", "sentence"),
    [
        ("localhost:8081", {}, "'localhost:8081' is not a URL such as http://localhost:8081"),
        ("registry", {}, "is not a URL"),
        ("", {}, "is not a URL"),
        ("ftp://registry", {}, "is not a URL"),
        ("http://", {}, "is not a URL"),
        ("http://registry:99999", {}, "is not a URL"),
        ("http://[::1", {}, "is not a URL"),
        ("http://a b", {}, "leave out spaces"),
        ("http://a?b", {}, "leave out spaces"),
        ("http://ann:secret@registry", {}, "holds a login: give it as basic.auth.user.info"),
        (URL, {"user": "x"}, "has no option 'user'; the options are basic.auth.user.info"),
        (URL, {"basic.auth.user.info": "ann"}, "not of the form NAME:PASSWORD"),
        (URL, {"basic.auth.user.info": "a:b", "bearer.auth.token": "c"}, "not both"),
        (URL, {"bearer.auth.token": "a\nb"}, "characters that no token has"),
        (URL, {"bearer.auth.token": ""}, "is empty"),
        (URL, {"timeout": "soon"}, "timeout is 'soon'; it must be a number from 0.1 to 600"),
        (URL, {"timeout": "nan"}, "it must be a number"),
        (URL, {"max.retries": "-1"}, "it must be a number from 0 to 20"),
        (URL, {"ssl.ca.location": "/nowhere/ca.pem"}, "/nowhere/ca.pem cannot be read: no such file"),
        (URL, {"ssl.ca.location": "/dev/null"}, "holds no certificate"),
    ],
)
def test_what_cannot_be_used_is_told(url: str, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(RegistryError, match=sentence.replace("(", r"\(")) as raised:
        parse_location(url, options)
    assert "secret" not in str(raised.value)
