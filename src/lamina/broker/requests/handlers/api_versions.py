"""ApiVersions (key 18), versions 0-4.

Behaviour: the router's table, as far as it is offered on this listener, plus the features. A client that asks in an
unknown version gets a v0 answer with UNSUPPORTED_VERSION and the table, and asks again. From v3 the client names its
software, which has to consist of letters, digits, dots and dashes (KIP-511).
Version notes: features whose lowest level is 0 are left out below v4.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import UNSUPPORTED_VERSION, Api
from lamina.broker.requests.request import Request
from lamina.errors import ErrorCode, InvalidRequest, KafkaError
from lamina.image.features import SUPPORTED
from lamina.wire.api_keys import API_VERSIONS
from lamina.wire.building import response_shape

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FIRST_WITH_SOFTWARE = 3
_FIRST_WITH_LEVEL_0 = 4
"""Older Java clients fail on a feature that may be at level 0 (KAFKA-17492)."""


def handle(apis_on: Callable[[str], Sequence[Api]], metadata: Metadata, request: Request, message: Any) -> Any:
    apis = apis_on(request.listener_name)
    if request.api_version == UNSUPPORTED_VERSION:
        return _answer(apis, metadata, 0, ErrorCode.UNSUPPORTED_VERSION)
    if request.api_version >= _FIRST_WITH_SOFTWARE:
        for name in (message.client_software_name, message.client_software_version):
            if not _SOFTWARE.fullmatch(name):
                raise InvalidRequest(f"{name!r} cannot be the name or version of a client's software")
        request.client.client_software = f"{message.client_software_name} {message.client_software_version}"
    return _answer(apis, metadata, request.api_version, ErrorCode.NONE)


def _answer(apis: Sequence[Api], metadata: Metadata, api_version: int, error_code: ErrorCode) -> Any:
    shape = response_shape(API_VERSIONS, api_version)
    entry = shape.of("api_keys")
    table = [
        entry(
            api_key=api.key,
            min_version=api.versions[0] if api.advertised_from is None else api.advertised_from,
            max_version=api.versions[-1],
        )
        for api in apis
    ]
    supported, finalized = (), ()
    if shape.has("finalized_features"):
        supported_feature, finalized_feature = shape.of("supported_features"), shape.of("finalized_features")
        supported = tuple(
            supported_feature(name=name, min_version=levels[0], max_version=levels[-1])
            for name, levels in sorted(SUPPORTED.items())
            if levels[0] > 0 or api_version >= _FIRST_WITH_LEVEL_0
        )
        finalized = tuple(
            finalized_feature(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(metadata.image.features.levels.items())
        )
    return shape(
        error_code=error_code,
        api_keys=tuple(table),
        supported_features=supported,
        finalized_features=finalized,
        finalized_features_epoch=metadata.image.features.epoch,
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_VERSIONS, max(request.api_version, 0))
    return shape(error_code=error.code, api_keys=())


API = Api(API_VERSIONS, "ApiVersions", range(5), error_response)
