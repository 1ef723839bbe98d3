"""Which listeners speak TLS, and with what: read at the start, and again while the broker runs.

Owns the loading by name: a broker without TLS has nothing of it in memory; when files or settings are others (S6), and
that a certificate's end is told in time (S25). What cannot be used stops the start; later the last one stays. Must not
know connections.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from lamina.broker.network.listener_tls import ListenerTls
from lamina.broker.threads import Threads
from lamina.errors import InvalidRequest
from lamina.settings.definition import SettingError
from lamina.settings.listeners import admin_listeners, listeners
from lamina.settings.ssl_stores import WITH_TLS, SslSettings, listener_ssl
from lamina.settings.values import BrokerSettings

if TYPE_CHECKING:
    from lamina.tls.server_identity import ServerIdentity

logger = logging.getLogger(__name__)

INSTALL = 'TLS needs the package cryptography: pip install "lamina[security]" brings it'
_NAMING = frozenset({"SSL", "HTTPS"})
"""Where nobody logs in by other means."""
WARNING_DAYS = (1, 7, 30)
_DAY_MS = 86_400_000


class TlsError(Exception):
    """TLS that a listener cannot speak; the message is one sentence that names the listener."""


class TlsListeners:
    def __init__(self, settings: BrokerSettings, now_ms: Callable[[], int]) -> None:
        """Raises :class:`TlsError`."""
        self._now_ms = now_ms
        opened = (*listeners(settings), *admin_listeners(settings))
        self._listeners = tuple(one for one in opened if one.protocol in WITH_TLS)
        self._by_name = {
            listener.name: ListenerTls(
                listener.name, load(listener.name, found, now_ms()), names_principals=listener.protocol in _NAMING
            )
            for listener in self._listeners
            if (found := listener_ssl(settings, listener)) is not None
        }
        self._warned_days: dict[str, int] = {}
        self.reloads = 0
        self.refused_reloads = 0

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[ListenerTls]:
        return iter(self._by_name.values())

    def get(self, listener_name: str) -> ListenerTls | None:
        return self._by_name.get(listener_name)

    # Others, while the broker runs

    def changed(self, settings: BrokerSettings) -> "dict[str, ServerIdentity | TlsError]":
        """Those that are others under these settings, by listener, read anew, or why they cannot be used.

        May run on any thread.
        """
        found: dict[str, ServerIdentity | TlsError] = {}
        for listener in self._listeners:
            tls = self.get(listener.name)
            if tls is None:
                continue
            try:
                given = listener_ssl(settings, listener)
                assert given is not None
                if self._is_other(tls, given):
                    found[tls.name] = self._load_next(tls, given)
            except SettingError as error:
                found[tls.name] = TlsError(str(error))
            except TlsError as error:
                found[tls.name] = error
        return found

    def _is_other(self, tls: ListenerTls, given: SslSettings) -> bool:
        from lamina.tls.server_identity import stamps_of

        return given != tls.identity.settings or stamps_of(given) != tls.identity.stamps

    def _load_next(self, tls: ListenerTls, given: SslSettings) -> "ServerIdentity":
        from lamina.tls.stores import StoreError

        identity = load(tls.name, given, self._now_ms())
        try:
            identity.facts.check_follows(tls.identity.facts, given)
        except StoreError as error:
            raise TlsError(f"listener {tls.name}: {error}") from None
        return identity

    def take(self, listener_name: str, identity: "ServerIdentity") -> None:
        """Handshakes that begin from now on have it."""
        self._by_name[listener_name].take(identity)
        self._warned_days.pop(listener_name, None)
        self.reloads += 1
        logger.info("listener %s shows another certificate now, of %s", listener_name, identity.facts.name)

    # Ends of certificates

    def warn(self) -> None:
        """Tell of certificates that end soon: once for each of 30, 7 and 1 days, and when it has happened."""
        for tls in self:
            left_ms = tls.identity.facts.not_after_ms - self._now_ms()
            days = next((days for days in (0, *WARNING_DAYS) if left_ms <= days * _DAY_MS), None)
            if days is not None and days != self._warned_days.get(tls.name):
                self._warned_days[tls.name] = days
                span = "a day" if days == 1 else f"{days} days"
                when = f"expires in less than {span}" if days else "has expired: clients refuse it"
                logger.warning("the certificate of listener %s, of %s, %s", tls.name, tls.identity.facts.name, when)


class TlsReading:
    """Reads them on threads, when it is told to or when their files are others."""

    def __init__(self, tls: TlsListeners, threads: Threads) -> None:
        self._tls = tls
        self._threads = threads
        self._told: dict[str, str] = {}
        """What was wrong the last time with each listener, which is not said again."""

    async def check(self, settings: BrokerSettings) -> None:
        for found in (await self._threads.run(partial(self._tls.changed, settings))).values():
            if isinstance(found, TlsError):
                raise InvalidRequest(str(found))

    async def refresh(self, settings: BrokerSettings) -> None:
        for name, found in (await self._threads.run(partial(self._tls.changed, settings))).items():
            if not isinstance(found, TlsError):
                self._told.pop(name, None)
                self._tls.take(name, found)
            elif str(found) != self._told.get(name):
                self._told[name] = str(found)
                self._tls.refused_reloads += 1
                logger.error("%s: the last certificate is still shown", found)
        self._tls.warn()


def load(listener_name: str, settings: SslSettings, now_ms: int) -> "ServerIdentity":
    """Raises :class:`TlsError`."""
    try:
        from lamina.tls.server_identity import load_server_identity
        from lamina.tls.stores import StoreError
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "cryptography":
            raise
        raise TlsError(f"listener {listener_name}: {INSTALL}") from None
    try:
        return load_server_identity(settings, now_ms)
    except StoreError as error:
        raise TlsError(f"listener {listener_name}: {error}") from None
