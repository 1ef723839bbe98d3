"""Whether the admin listener shows anything to whoever comes without a token (S90).

Must not know tokens, nor what there is to be shown.
"""

from lamina.settings.authorization import AUTHORIZER_CLASS_NAME
from lamina.settings.listeners import Listener, listeners
from lamina.settings.network import LAMINA_ADMIN_AUTHENTICATION
from lamina.settings.ssl import SSL_CLIENT_AUTH
from lamina.settings.values import BrokerSettings


def is_reading_open(settings: BrokerSettings) -> bool:
    how = settings[LAMINA_ADMIN_AUTHENTICATION]
    if how != "auto":
        return bool(how == "none")
    authorizer = settings.get(AUTHORIZER_CLASS_NAME)
    return not authorizer and not any(_asks_who(settings, listener) for listener in listeners(settings))


def _asks_who(settings: BrokerSettings, listener: Listener) -> bool:
    if listener.protocol != "SSL":
        return listener.protocol.startswith("SASL")
    own = settings.of_listener(SSL_CLIENT_AUTH, listener.name)
    return bool((settings[SSL_CLIENT_AUTH] if own is None else own) == "required")
