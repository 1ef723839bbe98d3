import subprocess
import sys
from importlib.machinery import PathFinder

import crc32c as package
import pytest

from lamina.records import checksum

CHECK = 0xE3069283
"""Of the digits 1 to 9, as everywhere where CRCs are listed."""


def test_it_is_crc_32c_of_any_buffer_and_goes_on_from_another() -> None:
    for data in (b"123456789", bytearray(b"123456789"), memoryview(b"0123456789")[1:]):
        assert checksum.crc32c(data) == CHECK
    assert checksum.crc32c(b"456789", checksum.crc32c(b"123")) == CHECK


@pytest.mark.parametrize("order", ["lamina.records.checksum, crc32c", "crc32c, lamina.records.checksum"])
def test_there_is_one_module_whoever_is_first(order: str) -> None:
    code = f"import {order}; print(crc32c.crc32c is lamina.records.checksum.crc32c)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


def test_a_package_without_a_module_beneath_is_loaded_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "crc32c._crc32c")
    monkeypatch.setattr(PathFinder, "find_spec", lambda *_: None)
    assert checksum.load() is package
