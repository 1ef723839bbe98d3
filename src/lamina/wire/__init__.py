"""Bytes ↔ Kafka messages. Pure: no socket, no clock, no knowledge of which APIs a broker offers.

- `frames`: received bytes → frames, with the size checked before a byte is allocated.
- `headers`: a frame → request header and where the body starts.
- `versions`: which versions are flexible, which header goes with which message, schema look-up.
- `codec`: body ↔ message, both directions, by functions compiled per message version on first use.
- `produce`, `fetch_request`, `fetch_response`: the hot path by hand; records are never copied, and a Fetch
  answer has holes for `sendfile`.

The messages are kio's dataclasses; its schemas are the only thing taken from kio. Its native parser is not
used on bytes from the network: a compact array that announces 2^31 elements makes it abort the whole
process, and an unknown tagged field, which KIP-482 says to ignore, makes it raise. Everything that can be
wrong with a request comes out as `MalformedRequest` with one sentence.
"""
