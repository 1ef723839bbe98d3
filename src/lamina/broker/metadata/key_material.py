"""Files that settings name and that are read again while the broker runs: certificates and keys.

Owns who reads them: nobody in a broker without listeners. Must not know what is in them.
"""

from typing import Protocol

from lamina.settings.values import BrokerSettings


class KeyReader(Protocol):
    async def check(self, settings: BrokerSettings) -> None:
        """Read what is other under these settings. Raises INVALID_REQUEST where it could not be used."""

    async def refresh(self, settings: BrokerSettings) -> None:
        """Use what is other from now on; what cannot be used is told, and the last one stays."""


class KeyMaterial:
    def __init__(self) -> None:
        self._readers: list[KeyReader] = []

    def add_reader(self, reader: KeyReader) -> None:
        self._readers.append(reader)

    async def check(self, settings: BrokerSettings) -> None:
        for reader in self._readers:
            await reader.check(settings)

    async def refresh(self, settings: BrokerSettings) -> None:
        for reader in self._readers:
            await reader.refresh(settings)
