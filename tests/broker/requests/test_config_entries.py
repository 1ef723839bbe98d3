from lamina.broker.requests.config_entries import ConfigSource, ConfigType, broker_entries, topic_entries
from lamina.settings.lists import BROKER_SETTINGS, TOPIC_SETTINGS
from lamina.settings.resolve import resolve_broker


def test_every_kind_of_setting_has_a_type_in_the_protocol() -> None:
    kinds = {setting.kind.name.upper() for setting in (*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values())}
    assert kinds <= set(ConfigType.__members__)


def test_what_a_file_a_flag_or_set_says_is_static() -> None:
    settings = resolve_broker(file={"log.retention.hours": "1"}, flags={"log.dirs": "/a"}, sets={"num.partitions": "3"})
    entries = {entry.name: entry for entry in broker_entries(settings)}
    static = {name for name, entry in entries.items() if entry.source is ConfigSource.STATIC_BROKER}
    assert static == {"log.retention.hours", "log.retention.ms", "log.dirs", "num.partitions"}
    assert entries["log.retention.ms"].value == "3600000"
    assert entries["log.retention.ms"].synonyms[0].name == "log.retention.hours"


def test_a_topics_hidden_setting_is_told_only_where_it_is_set() -> None:
    settings = resolve_broker()
    name = "internal.segment.bytes"
    assert name not in [entry.name for entry in topic_entries(settings, {})]
    assert name in [entry.name for entry in topic_entries(settings, {name: "1000"})]
