"""Bytes ↔ Kafka messages. Pure: no socket, no clock, no knowledge of which APIs a broker offers.

- `frames`: received bytes → frames, with the size checked before a byte is allocated.
- `headers`: a frame → request header and where the body starts.
- `versions`: which versions are flexible, which header goes with which message, schema look-up.
- `codec`: body ↔ message, both directions, by functions compiled per message version on first use.
- `produce`, `fetch_request`, `fetch_response`, `fetched`: the hot path by hand; records are never copied, and a
  Fetch answer has holes for `sendfile`.

- `message_table`, `schemas`, `fields`: every message in one compact table, its classes, what they are made of.

The table is made from kio by `make schemas`; a broker never imports kio. Its native parser is not for bytes from the
network either: a compact array that announces 2^31 elements makes it abort the whole process, and an unknown tagged
field, which KIP-482 says to ignore, makes it raise. Everything that can be wrong with a request comes out as
`MalformedRequest` with one sentence.
"""
