"""Which versions of each API the other side offers, and which one a call is sent in.

Owns the ApiVersions exchange (KIP-35, KIP-511). It is the one request whose version is guessed: a broker that does not
know it answers UNSUPPORTED_VERSION in version 0, with the versions that it does know (protocol.md §2.3). Must not know
connections.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Any, Final

from lamina import __version__
from lamina.errors import ErrorCode, UnsupportedVersion
from lamina.peer.call import Call, MessageCall
from lamina.wire.api_keys import API_VERSIONS
from lamina.wire.codec import parse_response
from lamina.wire.headers import parse_response_header
from lamina.wire.primitives import MalformedRequest

_VERSIONS: Final = range(5)

_unpack_error_code = Struct(">h").unpack_from


class ApiVersionsCall(MessageCall):
    """Asks for all versions, in the newest one that may be known."""

    def __init__(self, newest: int = _VERSIONS[-1]) -> None:
        super().__init__(
            API_VERSIONS,
            range(newest, newest + 1),
            client_software_name="lamina",
            client_software_version=__version__,
        )

    def decode(self, version: int, frame: memoryview) -> Any:
        """A refusal is in version 0, whatever was asked; every version has its error first."""
        _, body_at = parse_response_header(API_VERSIONS, version, frame)
        if len(frame) < body_at + 2:
            raise MalformedRequest("ApiVersionsResponse: it ends before its last field.")
        is_refused = _unpack_error_code(frame, body_at)[0] == ErrorCode.UNSUPPORTED_VERSION
        return parse_response(API_VERSIONS, 0 if is_refused else version, frame)[1]


class OfferedVersions:
    """What one broker said that it offers."""

    __slots__ = ("_levels", "_ranges")

    def __init__(self, api_keys: Iterable[Any], finalized_features: Iterable[Any] = ()) -> None:
        self._ranges = {int(one.api_key): range(one.min_version, one.max_version + 1) for one in api_keys}
        self._levels = {str(one.name): int(one.max_version_level) for one in finalized_features}

    def feature_level(self, name: str) -> int:
        """At which level the whole cluster is; 0 where the broker tells nothing of it (KIP-584)."""
        return self._levels.get(name, 0)

    def newest(self, api_key: int, versions: range) -> int | None:
        """The newest version that both sides know."""
        offered = self._ranges.get(api_key, range(0))
        newest = min(versions.stop, offered.stop) - 1
        return newest if newest >= max(versions.start, offered.start) else None

    def version_for(self, call: Call[Any]) -> int:
        version = self.newest(call.api_key, call.versions)
        if version is None:
            offered = self._ranges.get(call.api_key)
            told = f"offers its versions {_named(offered)}" if offered else "does not offer it"
            raise UnsupportedVersion(
                f"API key {call.api_key} is needed in version {_named(call.versions)}; the broker {told}"
            )
        return version


def next_attempt(refusal: Any) -> ApiVersionsCall:
    """What to ask after UNSUPPORTED_VERSION: the newest that the broker named, else version 0."""
    newest = OfferedVersions(refusal.api_keys).newest(API_VERSIONS, _VERSIONS)
    return ApiVersionsCall(newest or 0)


def _named(versions: range) -> str:
    return str(versions.start) if len(versions) == 1 else f"{versions.start}-{versions.stop - 1}"
