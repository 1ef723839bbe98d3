"""The ZooKeeper ensemble that a broker's settings name: which of its servers answer.

Every server is asked by a connection of its own, with ZooKeeper's four-letter word ``ruok``; a server that does not
allow the word, or wants TLS, is believed to work when it accepts the connection. Must not open a session.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lamina.cli.doctor.finding import Finding, fine, problem, warning
from lamina.settings.zookeeper_options import ZooKeeperOptions
from lamina.store.ensemble_health import accepts, says_it_is_well

_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """``refusal`` is why nobody is there; ``is_well`` is ``None`` where the server does not say."""

    address: str
    refusal: str | None = None
    is_well: bool | None = None


def judge_ensemble(servers: Sequence[ServerFacts]) -> Finding:
    """A majority has to work together; with fewer nothing is decided."""
    name = "zookeeper"
    away = [server for server in servers if server.refusal is not None or server.is_well is False]
    working = len(servers) - len(away)
    what = f"{working} of {len(servers)} servers answer"
    if away:
        what += ": " + ", ".join(f"{one.address} {one.refusal or 'is not well'}" for one in away)
    if working <= len(servers) // 2:
        return problem(name, what, "start the ensemble, or correct zookeeper.connect: a majority has to answer")
    if away:
        return warning(name, what, "start the others: one more failure may stop all elections")
    if len(servers) % 2 == 0:
        return warning(name, what, "use an odd number of servers: one more than that survives no more failures")
    return fine(name, what)


def check_ensemble(options: ZooKeeperOptions) -> Finding:
    with ThreadPoolExecutor(len(options.hosts)) as threads:
        return judge_ensemble(list(threads.map(lambda host: _ask(host, is_plain=options.tls is None), options.hosts)))


def _ask(address: str, *, is_plain: bool) -> ServerFacts:
    host, _, port = address.rpartition(":")
    try:
        if not is_plain:
            accepts(host.strip("[]"), int(port), _SECONDS)
            return ServerFacts(address)
        is_well = says_it_is_well(host.strip("[]"), int(port), _SECONDS)
    except TimeoutError:
        return ServerFacts(address, "does not answer")
    except OSError as error:
        return ServerFacts(address, (error.strerror or str(error)).lower())
    return ServerFacts(address, is_well=is_well or None)
