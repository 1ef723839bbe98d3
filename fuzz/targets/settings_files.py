"""A whole broker's file and a topic's overrides: refused in a sentence, or resolved with every listener readable."""

from fuzz.choices import Choices
from lamina.settings.definition import SettingError
from lamina.settings.listeners import PORT_MAX, advertised_listeners, listeners
from lamina.settings.properties import PropertiesError, load
from lamina.settings.resolve import resolve_broker
from lamina.settings.topic_config import topic_config

_DEFAULTS = resolve_broker()
_MOST_NAMES = 30
"""Each unknown name is compared with all known ones, which takes time and finds nothing new."""


def one(data: bytes) -> None:
    choices = Choices(data)
    is_for_a_topic = choices.flag()
    try:
        given = dict(list(load(choices.rest()).items())[:_MOST_NAMES])
        if is_for_a_topic:
            config = topic_config(_DEFAULTS, given)
            assert config.segment_bytes > 0
            return
        settings = resolve_broker(file=given)
    except (PropertiesError, SettingError) as error:
        assert "\n" not in str(error)
        return
    assert all("\n" not in warning for warning in settings.warnings)
    for listener in (*listeners(settings), *advertised_listeners(settings)):
        assert listener.name
        assert 0 <= listener.port <= PORT_MAX
