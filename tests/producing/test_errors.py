"""What is said of records that were not written."""

from lamina.errors import InvalidRecord
from lamina.producing.errors import DeliveryFailed


def test_one_record_and_many_are_counted() -> None:
    refused = InvalidRecord("no key")
    assert str(DeliveryFailed("t", 0, 1, refused)).startswith("t-0: 1 record could not be written: ")
    assert str(DeliveryFailed("t", 0, 2000, refused)).startswith("t-0: 2,000 records could not be written: ")
    assert str(DeliveryFailed("t", 0, 0, refused)).startswith("t-0: records could not be written: ")
