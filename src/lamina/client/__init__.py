"""Speaking to a Kafka cluster, Lamina's or any other, through librdkafka.

Nothing in this room is imported by a broker.
"""
