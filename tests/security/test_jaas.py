"""JAAS entries as Kafka's files have them (S39)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.security.jaas import JaasError, read_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def options(text: str) -> dict[str, str]:
    return dict(read_jaas(f"{PLAIN} required {text};").options)


def test_an_entry_of_kafkas_documentation() -> None:
    entry = read_jaas(
        f"{PLAIN} required \\\n".replace("\\\n", "\n") + 'username="admin"\n  user_admin="admin-secret" ;'
    )
    assert entry.login_module == PLAIN
    assert entry.flag == "required"
    assert dict(entry.options) == {"username": "admin", "user_admin": "admin-secret"}


@pytest.mark.parametrize("flag", ["required", "REQUISITE", "Sufficient", "optional"])
def test_flags_are_read_in_any_case(flag: str) -> None:
    assert read_jaas(f"Module {flag};").flag == flag.lower()


def test_comments_are_passed_over() -> None:
    assert options('// user="no"\n a="1" /* b="2" * / ** */ c="//3" d="/*4*/"') == {"a": "1", "c": "//3", "d": "/*4*/"}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r'"a\"b"', 'a"b'),
        (r'"a\\b"', "a\\b"),
        (r'"a\tb\n"', "a\tb\n"),
        (r'"\101\60\x"', "A0x"),
        ("'a\"b'", 'a"b'),
        ('"a;b=c d"', "a;b=c d"),
        ('"pässwörd"', "pässwörd"),
        ("word", "word"),
        ("a-b_c$d.e9", "a-b_c$d.e9"),
        ('""', ""),
    ],
)
def test_values_are_read_as_javas_tokenizer_reads_them(written: str, read: str) -> None:
    assert options(f"key={written}") == {"key": read}


def test_the_last_value_counts() -> None:
    assert options('a="1" a="2"') == {"a": "2"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "name of a login module"),
        (";", "name of a login module"),
        ("Module", "one of required"),
        ("Module a=b;", "one of required"),
        ("Module required", "semicolon"),
        ('Module required a="secret"', "semicolon"),
        ("Module required a;", "key="),
        ("Module required a=;", "key="),
        ("Module required a=", "key="),
        ('Module required = "secret";', "key="),
        ("Module required a=5;", "not understood"),
        ('Module required a="secret;', "not understood"),
        ('Module required a="sec\nret";', "not understood"),
        ('Module required a="secret"; Other required;', "several"),
        ("KafkaServer { Module required; };", "one of required"),
        ("Module required /* a;", "not understood"),
    ],
)
def test_what_is_not_an_entry_is_refused_without_its_values(text: str, why: str) -> None:
    with pytest.raises(JaasError, match=why) as refused:
        read_jaas(text)
    assert "secret" not in str(refused.value)


def test_no_representation_shows_a_value() -> None:
    assert "hunter2" not in repr(read_jaas('Module required password="hunter2";'))


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), st.text(st.characters(codec="utf-8"))))
def test_what_is_quoted_is_read_back(wanted: dict[str, str]) -> None:
    escaped = {
        key: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
        for key, value in wanted.items()
    }
    assert options(" ".join(f'{key}="{value}"' for key, value in escaped.items())) == wanted


@given(st.text())
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        read_jaas(text)
    except JaasError as error:
        assert str(error)
