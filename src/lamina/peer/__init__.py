"""Speaking Kafka's protocol to other brokers: raw requests and raw batches, on an event loop.

- `addresses`: where a broker is.
- `incoming`, `call`, `versions`, `exchange`: one connection without its socket. Bytes in, responses out; requests in,
  bytes out. Pure.
- `connection`: the same on a transport, with its time limits. `connector`: the one place that turns an address into
  an authenticated connection.
- `security_properties`: what Kafka's client properties say of TLS and logins; pure. `tls`, `sasl`: connectors that do
  it. `security`: which of them a client needs. `tls_failures`: what went wrong, in one sentence.
- `view`: what Metadata and leader hints told about the cluster; `retries`: which errors pass by themselves, and how
  long to wait before the next attempt. Both pure. `target`: which broker a request is for, by its role.
- `connection_pool`: those that are open, by address. `routes`: who has a role, and the connection there.
- `cluster`: all of this as one object: `ClusterClient.request`, `fetch`, `produce`, `list_offset`.
- `fetching`, `producing`, `listing`, `lending`, `transacting`: the calls on raw batches, offsets, files that a leader
  lends, and transactions. Pure.
- `limits`: how long and how much a client waits for. `properties`: numbers among Kafka's client properties.

Time is the running loop's and randomness is handed in, so that the owner of the loop controls this package. Must not
know brokers' insides, Spark or librdkafka.
"""
