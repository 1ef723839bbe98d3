"""What became of the records that were sent."""

from lamina.client.deliveries import Deliveries


def test_offsets_are_told_by_partition() -> None:
    deliveries = Deliveries()
    for partition, offset in ((0, 5), (1, 0), (0, 6), (0, 9), (0, 7)):
        deliveries.arrive(10, partition, offset)
    assert (deliveries.records, deliveries.size_bytes) == (5, 50)
    assert (deliveries.landed[0].records, deliveries.landed[0].first_offset, deliveries.landed[0].last_offset) == (
        4,
        5,
        9,
    )
    assert (deliveries.landed[1].first_offset, deliveries.landed[1].last_offset) == (0, 0)


def test_a_broker_that_tells_no_offsets() -> None:
    deliveries = Deliveries()
    deliveries.arrive(1, 0, -1001)
    assert (deliveries.landed[0].records, deliveries.landed[0].first_offset) == (1, None)


def test_the_first_record_that_failed_is_kept() -> None:
    deliveries = Deliveries()
    for number, why in ((7, "late"), (3, "early"), (5, "between")):
        deliveries.fail(number, why)
    assert (deliveries.failed_number, deliveries.failure) == (3, "early")
