"""SCRAM (RFC 5802, RFC 7677) as Kafka has it: both sides, as state machines from bytes to bytes (KIP-84).

Owns the messages and the proofs. Nothing here takes longer than a few microseconds: a client salts its password
between two messages. Stricter than Kafka: ``c=`` must hold the header of the first message (S41), and a message that
demands an extension (``m=``) is refused. Must not know where credentials are kept, nor make randomness.
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import NamedTuple

from lamina.security.sasl import MOST_MESSAGE_BYTES, SaslError
from lamina.security.scram_credential import LEAST_ITERATIONS, ScramCredential, ScramMechanism

MOST_ITERATIONS_OF_A_SERVER = 131_072
"""What a client computes for a server that it does not know yet, so a false one cannot keep it busy (S88)."""

_RADIX_36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_SALT_CHARACTERS = 25
_NAME = re.compile(r"(?:[^=,\x00]|=2C|=3D)+")
_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_EXTENSION = re.compile(r"([A-Za-z]+)=([^,\x00]+)")
_COUNT = re.compile(r"[0-9]{1,9}")


class ScramError(SaslError):
    """The other side's message cannot be accepted; the text holds nothing secret."""


def salt_from(random_bytes: bytes) -> bytes:
    """A salt of the form that Kafka's tools make, so that a made-up one cannot be told from others."""
    number = int.from_bytes(random_bytes, "big")
    return "".join(_RADIX_36[number // 36**place % 36] for place in range(_SALT_CHARACTERS)).encode()


class RepeatedNonce(ScramError):
    """A client's nonce with its own part twice, which Kafka refuses too; whoever uses such a client has to be told."""

    told = "Authentication failed: the nonce of SCRAM is wrong, as librdkafka before 2.6.1 sends it: use a newer one"


class ScramServer:
    """A broker's side of one login. ``look_up`` finds a user's credential, ``secret`` belongs to the broker alone.

    For a user that does not exist it goes on to the end with a salt made up from the secret, of which each mechanism
    has its own, as users do: who exists is not told (S83). Only iterations tell it, of a user that has more than the
    least.
    """

    expires_at_ms: int | None = None
    most_message_bytes = MOST_MESSAGE_BYTES

    def __init__(
        self,
        mechanism: ScramMechanism,
        look_up: Callable[[str], ScramCredential | None],
        secret: bytes,
        nonce: str,
    ) -> None:
        self._digest = mechanism.digest
        self._look_up = look_up
        self._secret = secret
        self._nonce = nonce
        self._repeated_nonce = ""
        self._state = _ServerState.FIRST
        self._header = b""
        self._messages = b""
        self._credential: ScramCredential | None = None
        self.user = ""
        """Who wants to be let in; that it is so is known when the login is complete."""

    @property
    def is_complete(self) -> bool:
        return self._state is _ServerState.COMPLETE

    def respond(self, message: bytes) -> bytes:
        """The answer to the client's next message; raises :class:`ScramError`, and then nothing more is accepted."""
        state, self._state = self._state, _ServerState.FAILED
        if state is _ServerState.FIRST:
            response = self._first(_text(message))
            self._state = _ServerState.FINAL
        elif state is _ServerState.FINAL:
            response = self._final(_text(message))
            self._state = _ServerState.COMPLETE
        else:
            raise ScramError("the login is over")
        return response

    def _first(self, message: str) -> bytes:
        first = _client_first(message)
        self.user = first.user
        if first.authorization_id not in ("", first.user):
            raise ScramError("the client asked for another user's rights")
        credential = self._look_up(first.user)
        if credential is None:
            made_up = _hmac("sha256", self._secret, f"{self._digest},{first.user}".encode())
            salt, iterations = salt_from(made_up), LEAST_ITERATIONS
        else:
            salt, iterations = credential.salt, credential.iterations
        # Nobody has a delegation token. A user's salt is told all the same: another would tell that there is a user.
        is_token = first.extensions.get("tokenauth", "").lower() == "true"
        self._credential = None if is_token else credential
        self._nonce = first.nonce + self._nonce
        self._repeated_nonce = first.nonce + self._nonce
        self._header = first.header.encode()
        response = f"r={self._nonce},s={b64encode(salt).decode()},i={iterations}".encode()
        self._messages = first.bare.encode() + b"," + response
        return response

    def _final(self, message: str) -> bytes:
        without_proof, separator, proof_text = message.rpartition(",p=")
        parts = without_proof.split(",")
        if not separator or len(parts) < 2 or not parts[0].startswith("c=") or not parts[1].startswith("r="):
            raise ScramError("the client's final message is malformed")
        _extensions(parts[2:])
        if parts[1][2:] == self._repeated_nonce:
            raise RepeatedNonce(RepeatedNonce.told)
        is_bound = hmac.compare_digest(_base64(parts[0][2:]), self._header)
        if not hmac.compare_digest(parts[1][2:].encode(), self._nonce.encode()) or not is_bound:
            raise ScramError("the client's final message does not belong to its first")
        signed = self._messages + b"," + without_proof.encode()
        # For a user that does not exist, the same is computed with keys that no proof can match.
        nobody = ScramCredential(b"", bytes(hashlib.new(self._digest).digest_size), b"", LEAST_ITERATIONS)
        credential = self._credential or nobody
        client_key = _xor(_base64(proof_text), _hmac(self._digest, credential.stored_key, signed))
        stored_key = hashlib.new(self._digest, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key) or self._credential is None:
            raise ScramError("the proof is wrong")
        return b"v=" + b64encode(_hmac(self._digest, credential.server_key, signed))


class Challenge(NamedTuple):
    """What a server wants the password to be salted with."""

    salt: bytes
    iterations: int


class ScramClient:
    """A client's side of one login: :meth:`first`, :meth:`challenge`, :meth:`final`, :meth:`verify`, in this order.

    Between the second and the third the caller makes :func:`salted_password` of the challenge. ``extensions`` are
    signed along, as ``tokenauth=true`` for a delegation token.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        user: str,
        nonce: str,
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        self._digest = mechanism.digest
        name = user.replace("=", "=3D").replace(",", "=2C")
        added = "".join(f",{key}={value}" for key, value in (extensions or {}).items())
        self._nonce = nonce
        self._bare = f"n={name},r={nonce}{added}".encode()
        self._server_first = b""
        self._server_nonce = ""
        self._server_signature = b""

    def first(self) -> bytes:
        return b"n,," + self._bare

    def challenge(self, server_first: bytes) -> Challenge:
        """What the server asks for; raises :class:`ScramError` for what is not to be trusted or computed."""
        parts = _text(server_first).split(",")
        if len(parts) < 3 or [part[:2] for part in parts[:3]] != ["r=", "s=", "i="]:
            raise ScramError("the server's first message is malformed")
        _extensions(parts[3:])
        nonce, salt, count = (part[2:] for part in parts[:3])
        if not nonce.startswith(self._nonce) or nonce == self._nonce or not _NONCE.fullmatch(nonce):
            raise ScramError("the server's nonce does not go on with the client's")
        iterations = int(count) if _COUNT.fullmatch(count) else 0
        if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS_OF_A_SERVER:
            raise ScramError(
                f"the server asks for {count[:20]} iterations; accepted are {LEAST_ITERATIONS} to "
                f"{MOST_ITERATIONS_OF_A_SERVER}"
            )
        self._server_first, self._server_nonce = server_first, nonce
        return Challenge(_base64(salt), iterations)

    def final(self, salted: bytes) -> bytes:
        """The proof that the client knows the password, given its salted form."""
        without_proof = b"c=biws,r=" + self._server_nonce.encode()
        signed = self._bare + b"," + self._server_first + b"," + without_proof
        client_key = _hmac(self._digest, salted, b"Client Key")
        stored_key = hashlib.new(self._digest, client_key).digest()
        self._server_signature = _hmac(self._digest, _hmac(self._digest, salted, b"Server Key"), signed)
        proof = _xor(client_key, _hmac(self._digest, stored_key, signed))
        return without_proof + b",p=" + b64encode(proof)

    def verify(self, server_final: bytes) -> None:
        """Raise :class:`ScramError` unless the server has shown that it knows the user's keys."""
        first, *extensions = _text(server_final).split(",")
        if first.startswith("e="):
            raise ScramError(f"the server refused: {first[2:80]}")
        _extensions(extensions)
        signature = _base64(first[2:]) if first.startswith("v=") else b""
        if not self._server_signature or not hmac.compare_digest(signature, self._server_signature):
            raise ScramError("the server does not know the user's keys")


class _ServerState(Enum):
    FIRST = auto()
    FINAL = auto()
    COMPLETE = auto()
    FAILED = auto()


class _ClientFirst(NamedTuple):
    header: str
    bare: str
    authorization_id: str
    user: str
    nonce: str
    extensions: dict[str, str]


def _client_first(message: str) -> _ClientFirst:
    binding, authorization, *attributes = message.split(",") if message.count(",") >= 3 else ("", "", "")
    if binding != "n" or len(attributes) < 2:
        raise ScramError("the client's first message is malformed, or asks for channel binding")
    if authorization and not authorization.startswith("a="):
        raise ScramError("the client's first message is malformed")
    name, nonce = attributes[:2]
    if not name.startswith("n=") or not nonce.startswith("r=") or not _NONCE.fullmatch(nonce[2:]):
        raise ScramError("the client's first message is malformed, or demands an extension")
    return _ClientFirst(
        header=f"{binding},{authorization},",
        bare=",".join(attributes),
        authorization_id=_plain_name(authorization[2:]) if authorization else "",
        user=_plain_name(name[2:]),
        nonce=nonce[2:],
        extensions=_extensions(attributes[2:]),
    )


def _plain_name(escaped: str) -> str:
    if not _NAME.fullmatch(escaped):
        raise ScramError("the client's name is malformed")
    return escaped.replace("=2C", ",").replace("=3D", "=")


def _extensions(parts: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in parts:
        match = _EXTENSION.fullmatch(part)
        if match is None or match[1] == "m":
            raise ScramError("an extension is malformed or demanded")
        found[match[1]] = match[2]
    return found


def _text(message: bytes) -> str:
    """Names are ASCII, as for Kafka (S41)."""
    try:
        return message.decode("ascii")
    except UnicodeDecodeError:
        raise ScramError("the message is not ASCII") from None


def _base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        raise ScramError("the message holds no Base64 where it should") from None


def _hmac(digest: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, digest)


def _xor(left: bytes, right: bytes) -> bytes:
    if len(left) != len(right):
        raise ScramError("the proof has a wrong length")
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
