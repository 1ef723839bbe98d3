"""Settings of one listener whose listener does not exist.

Owns the refusal of ``listener.name.NAME.*`` that would protect nothing, because NAME is misspelled or gone. Dynamic
settings are let through: a listener may be renamed while one is stored, which only a running broker can take out.
Must not know what the settings mean.
"""

from collections.abc import Sequence

from lamina.settings.definition import SettingError
from lamina.settings.listeners import ADMIN, admin_listeners, listeners
from lamina.settings.lists import listener_setting
from lamina.settings.network import CONTROLLER_LISTENER_NAMES
from lamina.settings.refused import sounds_like_security
from lamina.settings.values import BrokerSettings, Source

_PREFIX = "listener.name."
_AT_START = frozenset({Source.SET, Source.FLAG, Source.FILE})


def check_listener_prefixes(settings: BrokerSettings) -> None:
    """Raise for a setting that was meant for a listener and reaches none."""
    there = [listener.name for listener in listeners(settings)]
    if any(one.protocol == "HTTPS" for one in admin_listeners(settings)):
        there.append(ADMIN)
    known = tuple(f"{_PREFIX}{name.lower()}." for name in (*there, ADMIN, *settings[CONTROLLER_LISTENER_NAMES]))
    for source, given in settings.layers:
        for name, text in given.items():
            is_checked = source in _AT_START and listener_setting(name) and sounds_like_security(name, text)
            if is_checked and not name.startswith(known):
                raise SettingError(_sentence(name, there, is_in_capitals=name.lower().startswith(known)))


def _sentence(name: str, there: Sequence[str], *, is_in_capitals: bool) -> str:
    shown = name if name.isprintable() else repr(name)
    listener_name = name.removeprefix(_PREFIX).partition(".")[0]
    if is_in_capitals:
        return f"{shown}: must name the listener in small letters, {_PREFIX}{listener_name.lower()}"
    missing = listener_name.upper() if listener_name.isprintable() else repr(listener_name)
    return f"{shown}: there is no listener {missing}; {_are(there)}. Correct it or take it out."


def _are(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last} are" if others else f"{last} is"
