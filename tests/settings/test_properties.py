import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.settings.properties import PropertiesError, dump, load, load_given

# Everything a Java string can hold that has a UTF-16 form.
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT.filter(bool), TEXT), st.lists(TEXT))
def test_what_is_dumped_is_loaded_back(properties: dict[str, str], comments: list[str]) -> None:
    assert load(dump(properties, comments)) == properties


@given(st.dictionaries(TEXT.filter(bool), TEXT))
def test_what_is_dumped_is_printable_ascii(properties: dict[str, str]) -> None:
    assert all(0x20 <= byte < 0x7F or byte == 0x0A for byte in dump(properties))


@given(st.binary())
def test_any_bytes_are_read_or_refused_with_a_line_number(data: bytes) -> None:
    try:
        load(data)
    except PropertiesError as problem:
        assert str(problem).startswith("line ")


@pytest.mark.parametrize(
    "line",
    [
        b"a=b",
        b"a:b",
        b"a b",
        b"a = b",
        b"  a\t:\tb",
        b"a\fb",
        b"a=b\r",
        b"a=b\r\n",
        b"\\\na=b",
        b"\xef\xbb\xbfa=b",
    ],
)
def test_every_separator_and_leading_blank_reads_the_same(line: bytes) -> None:
    assert load(line) == {"a": "b"}


def test_only_the_first_separator_separates() -> None:
    assert load(b"a==b\nc = : d\ne\\=f\\ g=h") == {"a": "=b", "c": ": d", "e=f g": "h"}


def test_comments_and_blank_lines_are_passed_over() -> None:
    assert load(b"# a=1\n  ! b=2\n\n \t\f\nc=3 # kept\n#not continued \\\nd=4") == {"c": "3 # kept", "d": "4"}


def test_a_backslash_continues_a_line_and_drops_the_blanks_that_follow() -> None:
    assert load(b"a=one,\\\n   two,\\\r\n\t#three\nb=4") == {"a": "one,two,#three", "b": "4"}


def test_an_escaped_backslash_does_not_continue_a_line() -> None:
    assert load(b"a=C:\\\\\nb=2") == {"a": "C:\\", "b": "2"}


def test_a_comment_may_follow_a_lone_backslash() -> None:
    assert load(b"\\\n# a=1\nb=2") == {"b": "2"}


def test_a_backslash_at_the_very_end_is_dropped() -> None:
    assert load(b"a=b\\") == {"a": "b"}


def test_trailing_blanks_belong_to_the_value() -> None:
    assert load(b"a=b  ") == {"a": "b  "}


def test_a_name_alone_has_an_empty_value() -> None:
    assert load(b"a\nb=\n=c") == {"a": "", "b": "", "": "c"}


def test_the_last_of_two_values_holds() -> None:
    assert load(b"a=1\na=2") == {"a": "2"}


def test_escapes_are_read_as_in_java() -> None:
    assert load(rb"a=\t\n\r\f\u00e9\ud83d\ude00\q\"") == {"a": '\t\n\r\fé😀q"'}


def test_latin_1_and_utf_8_are_both_read() -> None:
    assert load("a=é".encode()) == {"a": "é"}
    assert load("a=é".encode("latin-1")) == {"a": "é"}


def test_a_bad_escape_is_refused_with_its_line() -> None:
    with pytest.raises(PropertiesError) as caught:
        load(b"a=1\n# comment\nb=2\\\n\\u12g4")
    assert str(caught.value) == "line 3: \\u must be followed by four hexadecimal digits"


def test_half_a_surrogate_pair_is_refused_with_its_line() -> None:
    with pytest.raises(PropertiesError, match="line 1: half of a surrogate pair is missing"):
        load(rb"a=\ud83d")


def test_meta_properties_looks_as_kafka_writes_it() -> None:
    written = dump({"version": "1", "cluster.id": "MkU3OEVBNTcwNTJENDM2Qk", "node.id": "1"}, ["", "a comment"])
    assert written == b"#\n#a comment\nversion=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\nnode.id=1\n"


KEY = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\n", "line 1: this is PEM, a key"),
        (f"ssl.keystore.key=\\\n-----BEGIN PRIVATE KEY-----\n{KEY}\n", "line 3: NAME=VALUE is expected"),
        (f"a=b\n{KEY}\nQUERY==\n", "line 2: NAME=VALUE is expected"),
        (f"\x01\x02{KEY}=x", "line 1: NAME=VALUE is expected"),
    ],
)
def test_a_file_that_cannot_have_been_meant_is_refused_and_nothing_of_it_repeated(text: str, sentence: str) -> None:
    with pytest.raises(PropertiesError) as caught:
        load_given(text.encode())
    assert str(caught.value).startswith(sentence)
    assert KEY not in str(caught.value)


def test_a_key_may_be_a_value_of_a_file_that_is_given() -> None:
    text = f"ssl.keystore.key=-----BEGIN PRIVATE KEY-----\\\n{KEY}\\\n-----END PRIVATE KEY-----\nacks all\nlog.dirs=\n"
    given = load_given(text.encode())
    assert given == {
        "ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----{KEY}-----END PRIVATE KEY-----",
        "acks": "all",
        "log.dirs": "",
    }


def test_the_name_of_a_setting_alone_is_empty_as_in_java() -> None:
    assert load_given(b"ssl.endpoint.identification.algorithm\na=b\n") == {
        "ssl.endpoint.identification.algorithm": "",
        "a": "b",
    }
