import pytest

from lamina.settings.definition import SettingError, broker_setting
from lamina.settings.kinds import INT, PASSWORD, STRING, Rule
from lamina.settings.topic import CLEANUP_POLICY, RETENTION_MS, SEGMENT_BYTES


def test_a_value_out_of_range_is_named_with_its_setting_and_the_range() -> None:
    with pytest.raises(SettingError) as caught:
        SEGMENT_BYTES.parse("12")
    assert str(caught.value) == "segment.bytes = 12: must be at least 1048576 (1 MiB)"


def test_a_value_of_the_wrong_type_is_named_with_its_setting_and_the_type() -> None:
    with pytest.raises(SettingError) as caught:
        SEGMENT_BYTES.parse(" 1 GiB ")
    assert str(caught.value) == "segment.bytes = 1 GiB: must be a whole number of 32 bits"


def test_an_empty_value_is_shown_as_such() -> None:
    with pytest.raises(SettingError, match=r"segment.bytes = \(empty\): must be"):
        SEGMENT_BYTES.parse(" ")


def test_a_long_or_unprintable_value_is_cut_and_quoted() -> None:
    with pytest.raises(SettingError) as caught:
        SEGMENT_BYTES.parse("x" * 10_000)
    assert len(str(caught.value)) < 200
    with pytest.raises(SettingError, match=r"'1\\x1b\[0m'"):
        SEGMENT_BYTES.parse("1\x1b[0m")


def test_a_password_is_never_shown() -> None:
    short: Rule[str] = Rule("short", lambda value: len(value) < 3)
    secret = broker_setting("a.password", PASSWORD, None, "", rule=short)
    with pytest.raises(SettingError) as caught:
        secret.parse("hunter2")
    assert str(caught.value) == "a.password = [hidden]: must be short"
    assert secret.sensitive
    assert not broker_setting("a.word", STRING, None, "").sensitive


def test_surrounding_white_space_is_dropped() -> None:
    assert SEGMENT_BYTES.parse(" \t1048576\x00 ") == 1024 * 1024


def test_a_topics_default_is_what_its_pair_comes_to() -> None:
    assert RETENTION_MS.default == 7 * 24 * 60 * 60 * 1000


def test_a_new_setting_is_one_call() -> None:
    setting = broker_setting("num.partitions", INT, 1, "Partitions of a topic made without a number.")
    assert setting.parse("3") == 3
    assert [step.setting for step in setting.chain] == [setting]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("compacted", "must be a list of compact or delete; did you mean compact?"),
        ("Compact, deleted", "must be a list of compact or delete; did you mean compact,delete?"),
        ("forever", "must be a list of compact or delete"),
    ],
)
def test_a_wrong_word_gets_the_valid_ones_and_the_nearest(given: str, said: str) -> None:
    with pytest.raises(SettingError) as caught:
        CLEANUP_POLICY.parse(given)
    assert str(caught.value) == f"cleanup.policy = {given}: {said}"
