"""SaslHandshake (key 17), versions 0-1.

Behaviour: here ILLEGAL_SASL_STATE with no mechanisms: on a listener without SASL, and after the login on others (S35).
The login itself is served before requests come here, in ``broker/login``. Version notes: after version 0 the messages
of the login come as they are, after version 1 in SaslAuthenticate.
"""

from typing import Any

from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.errors import IllegalSaslState, KafkaError
from lamina.wire.api_keys import SASL_HANDSHAKE as API_KEY
from lamina.wire.building import response_shape


def handle(request: Request, message: Any) -> Any:
    raise IllegalSaslState("this listener needs no login, or the client has logged in")


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(error_code=error.code, mechanisms=())


API = Api(API_KEY, "SaslHandshake", range(2), error_response)
