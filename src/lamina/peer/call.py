"""A request together with the way its response is read, in whichever version both sides know.

Owns the shape that a connection needs of anything it is asked to send. Must not know connections.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from lamina.wire.answer_errors import error_codes
from lamina.wire.building import build_request
from lamina.wire.codec import encode_request, parse_response
from lamina.wire.primitives import Buffer

T_co = TypeVar("T_co", covariant=True)


class Call(Protocol[T_co]):
    """One request. `T_co` is what its response is read as."""

    @property
    def api_key(self) -> int: ...

    @property
    def versions(self) -> range:
        """The versions in which it says what it means."""

    @property
    def wait_ms(self) -> int:
        """How long the broker may hold its response back on purpose."""

    def encode(self, version: int, correlation_id: int, client_id: str) -> Buffer:
        """The whole frame."""

    def decode(self, version: int, frame: memoryview) -> T_co:
        """The response in a whole frame. Raises `MalformedRequest`."""

    def errors(self, response: Any) -> Iterable[int]:
        """The error codes in its response, wherever they stand."""


class MessageCall:
    """Any API by its schema: ``MessageCall(METADATA, range(4, 14), topics=None)``.

    Fields are given as to `build_request`: a version that cannot carry one leaves it out, so `versions` must hold only
    those that carry what matters. Responses are the wire's messages.
    """

    __slots__ = ("_facts", "api_key", "versions", "wait_ms")

    def __init__(self, api_key: int, versions: range, /, *, wait_ms: int = 0, **facts: Any) -> None:
        self.api_key = api_key
        self.versions = versions
        self.wait_ms = wait_ms
        self._facts: Mapping[str, Any] = facts

    def encode(self, version: int, correlation_id: int, client_id: str) -> Buffer:
        return encode_request(build_request(self.api_key, version, self._facts), correlation_id, client_id)

    def decode(self, version: int, frame: memoryview) -> Any:
        return parse_response(self.api_key, version, frame)[1]

    def errors(self, response: Any) -> Iterable[int]:
        return error_codes(response)
