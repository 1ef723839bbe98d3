"""From what was given to a broker's settings.

Owns the check of every name and value, whichever source it came from, and the warnings: one line for each
name that is ignored or unknown. A refused name or an impossible value raises SettingError. Must not read
files or arguments: they come as mappings from name to text.
"""

from collections.abc import Mapping
from dataclasses import replace

from lamina.settings.authorization import authorization_warnings
from lamina.settings.cleaner_limits import cleaner_limits
from lamina.settings.connection_limits import connection_limits
from lamina.settings.definition import SettingError, Update
from lamina.settings.group_config import check_group_limits
from lamina.settings.inter_broker_login import broker_principals, inter_broker_login
from lamina.settings.listener_prefixes import check_listener_prefixes
from lamina.settings.listeners import admin_listeners, advertised_admin_listeners, advertised_listeners
from lamina.settings.lists import (
    BROKER_SETTINGS,
    broker_ignored,
    broker_refusal,
    is_misspelling,
    listener_setting,
    nearest_broker_name,
)
from lamina.settings.refused import Refusal, sounds_like_security
from lamina.settings.sasl_listeners import check_listeners_sasl, sasl_warnings
from lamina.settings.spark import check_spark_conf
from lamina.settings.ssl_stores import check_listeners_ssl
from lamina.settings.values import BrokerSettings, Layers, Source
from lamina.settings.zookeeper_options import zookeeper_options

NOTHING: Mapping[str, str] = {}


def resolve_broker(
    *,
    file: Mapping[str, str] = NOTHING,
    flags: Mapping[str, str] = NOTHING,
    sets: Mapping[str, str] = NOTHING,
    dynamic_default: Mapping[str, str] = NOTHING,
    dynamic_broker: Mapping[str, str] = NOTHING,
) -> BrokerSettings:
    layers: Layers = (
        (Source.DYNAMIC_BROKER, dynamic_broker),
        (Source.DYNAMIC_DEFAULT, dynamic_default),
        (Source.SET, sets),
        (Source.FLAG, flags),
        (Source.FILE, file),
    )
    warnings: dict[str, None] = {}
    for source, given in layers:
        for name, text in given.items():
            if (warning := check_given(name, text, source)) is not None:
                warnings[warning] = None
    settings = BrokerSettings(BROKER_SETTINGS, layers, tuple(warnings))
    advertised_listeners(settings)
    admin_listeners(settings)
    advertised_admin_listeners(settings)
    check_listener_prefixes(settings)
    connection_limits(settings)
    check_listeners_ssl(settings)
    check_listeners_sasl(settings)
    inter_broker_login(settings)
    broker_principals(settings)
    cleaner_limits(settings)
    check_group_limits(settings)
    zookeeper_options(settings)
    return settings.with_warnings((*sasl_warnings(settings), *authorization_warnings(settings)))


def with_dynamic(
    settings: BrokerSettings, *, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]
) -> BrokerSettings:
    """The same settings under other dynamic ones; what cannot be used raises, as at start."""
    given = {source: dict(layer) for source, layer in settings.layers}
    return resolve_broker(
        file=given[Source.FILE],
        flags=given[Source.FLAG],
        sets=given[Source.SET],
        dynamic_default=dynamic_default,
        dynamic_broker=dynamic_broker,
    )


def check_given(name: str, text: str, source: Source) -> str | None:
    """Raise for what cannot be used; otherwise the warning that the name deserves, if any."""
    setting = BROKER_SETTINGS.get(name)
    if setting is not None:
        setting.parse(text)
        _check_update(name, setting.update, source)
        return f"{name}: ignored, {setting.unread}" if setting.unread else None
    of_listener = listener_setting(name)
    if of_listener is not None:
        replace(of_listener, name=name).parse(text)
        _check_update(name, of_listener.update, source)
        return None
    if check_spark_conf(name):
        _check_update(name, Update.READ_ONLY, source)
        return None
    refusal = broker_refusal(name)
    if refusal is not None:
        if refusal.asks_for_something(text):
            raise SettingError(f"{name}: refused, {refusal.reason}{_question(name, refusal)}")
        return None
    ignored = broker_ignored(name)
    if ignored is not None:
        return f"{name}: ignored, {ignored.reason}"
    shown = name if name.isprintable() else repr(name)
    nearest = nearest_broker_name(name)
    question = f", did you mean {nearest}?" if nearest else ""
    # A name of security with a letter wrong may not have its word in it.
    is_meant = nearest is not None and is_misspelling(name, nearest) and sounds_like_security(nearest, text)
    if is_meant or sounds_like_security(name, text):
        raise SettingError(
            f"{shown}: unknown{question or '.'} It sounds like security, and ignoring it could open the broker: "
            "correct it or take it out"
        )
    return f"{shown}: unknown{question}"


def _question(name: str, refusal: Refusal) -> str:
    """Of what Kafka does not know either."""
    nearest = None if name in refusal.names else nearest_broker_name(name)
    if nearest is None or not is_misspelling(name, nearest):
        return ""
    is_honoured = nearest in BROKER_SETTINGS or listener_setting(nearest) is not None
    return f"; did you mean {nearest}?" if is_honoured else ""


def _check_update(name: str, update: Update, source: Source) -> None:
    if source not in (Source.DYNAMIC_BROKER, Source.DYNAMIC_DEFAULT):
        return
    if update is Update.READ_ONLY:
        raise SettingError(f"{name}: cannot change while the broker runs")
    if update is Update.PER_BROKER and (source is Source.DYNAMIC_DEFAULT or name in BROKER_SETTINGS):
        raise SettingError(f"{name}: can only change on one broker and for one listener, as listener.name.NAME.ssl...")
