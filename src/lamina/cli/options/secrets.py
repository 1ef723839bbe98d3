"""Secrets where others can read them: in a file that is not its owner's alone, or on a command line (S86, S89).

Owns the warnings. Must not know what the secrets are for.
"""

import os
import stat
from collections.abc import Iterator, Mapping

from lamina.settings.lists import BROKER_SETTINGS, listener_setting

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_SECRETS_OF_CLIENTS = frozenset({"sasl.jaas.config", "ssl.keystore.key", "ssl.key.pem"})


def secret_warnings(file: str | None, in_file: Mapping[str, str], on_line: Mapping[str, str]) -> Iterator[str]:
    """``in_file`` and ``on_line`` are settings by name."""
    if file is not None and (name := _secret(in_file)) and _may_others_read(file):
        yield _chmod(name, file)
    if name := _secret(on_line):
        yield f"{name}: everybody on this machine can read a command line: give it in a file, by --config"


def client_secret_warning(file: str, properties: Mapping[str, str]) -> str | None:
    """Of a file of client properties."""
    name = next((name for name in properties if name.endswith("password") or name in _SECRETS_OF_CLIENTS), None)
    return _chmod(name, file) if name is not None and _may_others_read(file) else None


def _may_others_read(file: str) -> bool:
    status = os.stat(file)
    # What is handed over as a pipe, such as <(…), is nobody else's.
    return stat.S_ISREG(status.st_mode) and bool(stat.S_IMODE(status.st_mode) & _OTHERS)


def _chmod(name: str, file: str) -> str:
    return f"{name}: others may read {file}: chmod 600 {file}"


def _secret(given: Mapping[str, str]) -> str | None:
    """The name of the first one."""
    for name, text in given.items():
        setting = BROKER_SETTINGS.get(name) or listener_setting(name)
        if setting is not None and setting.sensitive and text.strip():
            return name
    return None
