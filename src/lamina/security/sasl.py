"""SASL as a broker meets it: what the broker's side of every mechanism has in common.

Owns the shape of such a side, a state machine from the client's bytes to the broker's, and of its refusal. Must not
know how the bytes travel, nor any one mechanism.
"""

from typing import Protocol

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"

MOST_MESSAGE_BYTES = 4096
"""Of a name and a password, or a proof. Who has not logged in may send far larger frames, and to take one apart holds
up the loop."""


class SaslError(Exception):
    """A login that is refused; the text is for the log, and holds nothing secret."""

    told: str | None = None
    """What the client is told, where that is more than that its credentials are invalid."""


class SaslServer(Protocol):
    """A broker's side of one login."""

    @property
    def user(self) -> str:
        """Who logs in; to be believed once the login is complete."""

    @property
    def is_complete(self) -> bool: ...

    @property
    def expires_at_ms(self) -> int | None:
        """When what was shown to log in stops being valid; ``None`` for never."""

    @property
    def most_message_bytes(self) -> int:
        """No message needs more; a longer one is not given to :meth:`respond`."""

    def respond(self, message: bytes) -> bytes:
        """The answer to the client's next message; raises :class:`SaslError`, and then nothing more is accepted."""
