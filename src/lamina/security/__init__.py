"""Who somebody is, and what they may do: principals, logins, access rules and quotas, as pure decisions.

Owns what Kafka's security means: names of principals, the mechanisms of SASL as state machines from bytes to bytes,
access rules and who may do what by them, quotas and how long a client that exceeds one is to wait. Every decision gets
the time and fresh randomness as arguments. Must not know sockets, files, the store or any message of the protocol.
"""
