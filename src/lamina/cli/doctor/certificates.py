"""The certificates that listeners show: readable, fit for TLS, and not about to end.

Must not listen.
"""

from lamina.broker.network.tls_listeners import WARNING_DAYS, TlsError, load
from lamina.cli.doctor.finding import Finding, fine, problem, warning
from lamina.settings.listeners import Listener
from lamina.settings.ssl_stores import SslSettings

_DAY_MS = 86_400_000


def check_certificate(listener: Listener, settings: SslSettings, now_ms: int) -> Finding:
    name = f"certificate of {listener.name}"
    try:
        facts = load(listener.name, settings, now_ms).facts
    except TlsError as error:
        return problem(name, str(error), "correct it: a broker does not start without it")
    days = (facts.not_after_ms - now_ms) // _DAY_MS
    what = f"{facts.name}, for {', '.join(sorted(facts.alternative_names)) or 'no host'}, expires in {days} days"
    if days < max(WARNING_DAYS):
        return warning(name, what, "put another one in its place: a running broker takes it")
    return fine(name, what)
