"""The APIs that this broker speaks. What is not here is not advertised.

Must not know what any of them does.
"""

from lamina.broker.handlers import api_versions, fetch, list_offsets, metadata, produce
from lamina.broker.router import Api

APIS: tuple[Api, ...] = (
    produce.API,
    fetch.API,
    list_offsets.API,
    metadata.API,
    api_versions.API,
)
