"""UpdateFeatures (key 57), versions 0-2.

Behaviour: the levels of finalized features are set, all or none; the first that cannot be set is told for the whole
request with INVALID_UPDATE_VERSION. The new levels are durable before the answer and hold from then on.
Version notes: v0 has a flag that allows a downgrade; from v1 the type of the upgrade is told (1 upgrade, 2 safe and
3 unsafe downgrade, which are the same here), and the request may be checked only. Success is told for each feature
below v2.
"""

from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.errors import ErrorCode, KafkaError
from lamina.image.features import FeatureUpdate, UpgradeType, update_features
from lamina.wire.api_keys import UPDATE_FEATURES as API_KEY
from lamina.wire.building import response_shape


async def handle(metadata: Metadata, request: Request, message: Any) -> Any:
    updates = [
        FeatureUpdate(update.feature, update.max_version_level, _upgrade_type(update))
        for update in message.feature_updates
    ]
    if getattr(message, "validate_only", False):
        update_features(metadata.decided, updates)
    else:
        await metadata.change(lambda image: update_features(image, updates))
    shape = response_shape(API_KEY, request.api_version)
    results = ()
    if shape.has("results"):
        result = shape.of("results")
        results = tuple(
            result(feature=update.name, error_code=ErrorCode.NONE, error_message=None) for update in updates
        )
    return shape(error_code=ErrorCode.NONE, error_message=None, results=results)


def _upgrade_type(update: Any) -> int:
    if hasattr(update, "allow_downgrade"):
        return UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
    return int(update.upgrade_type)


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(
        error_code=error.code, error_message=f"nothing was changed: {error}", results=()
    )


API = Api(API_KEY, "UpdateFeatures", range(3), error_response, is_for_controller=True)
