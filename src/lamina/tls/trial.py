"""A handshake in memory: whether two sides that belong together would let each other in.

Must not connect to anything.
"""

import ssl

from lamina.tls.stores import StoreError

_FLIGHTS = 6
"""A handshake is over after three in each direction."""


def check_handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Raises :class:`StoreError`. ``client`` must not ask for a host's name: there is none."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True))
    left = set(sides)
    for _ in range(_FLIGHTS):
        for side in sides:
            try:
                side.do_handshake()
                left.discard(side)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                raise StoreError(f"its truststore does not trust its own certificate: {error.verify_message}") from None
            except ssl.SSLError as error:
                raise StoreError(f"it could not connect to itself: {error.reason}") from None
    if left:
        raise StoreError("it could not connect to itself")
