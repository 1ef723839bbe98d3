"""Every setting of a broker and of a topic with any text: one sentence that names it, or a value that comes back."""

from fuzz.choices import Choices
from lamina.settings.definition import SettingError
from lamina.settings.lists import BROKER_SETTINGS, TOPIC_SETTINGS

SETTINGS = (*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values())


def one(data: bytes) -> None:
    choices = Choices(data)
    setting = choices.one_of(SETTINGS)
    # A command line's arguments come like this.
    text = choices.rest().decode("utf-8", "surrogateescape")
    try:
        value = setting.parse(text)
    except SettingError as error:
        assert str(error).startswith(f"{setting.name} = ")
        assert len(str(error)) < 1000
        assert str(error).encode().decode().isprintable()
        return
    assert setting.parse(setting.format(value)) == value
