"""SaslAuthenticate (key 36), versions 0-2.

Behaviour: here ILLEGAL_SASL_STATE: on a listener without SASL, and after the login on others (S35). The login itself is
served before requests come here, in ``broker/login``.
Version notes: from v1 the answer says for how many milliseconds the login holds, 0 for ever (KIP-368).
"""

from typing import Any

from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.errors import IllegalSaslState, KafkaError
from lamina.wire.api_keys import SASL_AUTHENTICATE as API_KEY
from lamina.wire.building import response_shape


def handle(request: Request, message: Any) -> Any:
    raise IllegalSaslState("there was no SaslHandshake, or the client has logged in")


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    return shape(error_code=error.code, error_message=str(error), auth_bytes=b"")


API = Api(API_KEY, "SaslAuthenticate", range(3), error_response)
