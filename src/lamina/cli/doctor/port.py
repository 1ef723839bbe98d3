"""The ports that a broker listens on, for clients and for its admin listener: free, or taken, and by whom.

Must not stay on it.
"""

import errno
import glob
import os
from dataclasses import dataclass, replace

from lamina.broker.network.listening import bind
from lamina.cli.doctor.finding import Finding, fine, problem, warning
from lamina.cli.doctor.probe import Answering, probe
from lamina.settings.listeners import Listener

_CONNECTIONS = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENS = "0A"


@dataclass(frozen=True, slots=True)
class PortFacts:
    """``refusal`` is the system's own word; the others are about who is there already."""

    refusal: str | None = None
    is_taken: bool = False
    answering: Answering | None = None
    owner: str | None = None

    def is_of(self, process: int) -> bool:
        """Whether it is this process that is there, for all that is known. 0 is one that is not known."""
        return process == 0 or self.owner is None or self.owner.startswith(f"process {process},")


def judge_port(address: str, facts: PortFacts, *, holder: int | None, is_plain: bool = True) -> Finding:
    """``holder`` is the process of a broker that holds the data directory, so that it should be on its port too.

    Nobody is asked who is on a port that is not plain: its process tells.
    """
    name = f"port {address}"
    if facts.refusal is None:
        if holder is not None:
            return fine(name, "free; the broker that runs on the data directory listens elsewhere")
        return fine(name, "free")
    if not facts.is_taken:
        return problem(name, facts.refusal.lower(), "choose an address of this machine and a port that you may use")
    owner = f" ({facts.owner})" if facts.owner else ""
    is_lamina = facts.answering is not None and facts.answering.is_lamina
    if holder is not None and facts.is_of(holder):
        if is_lamina:
            return fine(name, f"{facts.answering} answers{owner}")
        # A broker does not tell everybody who it is: not where nobody may ask.
        if not is_plain or facts.answering is not None or (holder and facts.owner):
            return fine(name, f"taken by the broker that runs on the data directory{owner}")
    other = "something that does not speak Kafka" if is_plain else "another program"
    who = f"taken by {other if facts.answering is None else facts.answering}"
    if is_lamina and holder is not None:
        return warning(
            name,
            f"{who}{owner}; the broker that runs on the data directory listens elsewhere",
            "say where with --listen HOST:PORT",
        )
    return problem(name, f"{who}{owner}", "stop that, or choose another port with --listen HOST:PORT")


def judge_admin_port(address: str, facts: PortFacts, *, holder: int | None, gives_way: bool) -> Finding:
    """``holder`` is the process of a broker that holds the data directory, so that it should be on this port too."""
    name = f"admin port {address}"
    if facts.refusal is None:
        return fine(name, "free")
    if not facts.is_taken:
        return problem(
            name, facts.refusal.lower(), "choose an address of this machine with --set lamina.admin.listeners=HOST:PORT"
        )
    owner = f" ({facts.owner})" if facts.owner else ""
    if holder is not None and facts.is_of(holder):
        return fine(name, f"taken by the broker that runs on the data directory{owner}")
    if gives_way:
        return fine(name, f"taken by another program{owner}; the broker takes a free port instead")
    # A broker that runs already has another port, but its next start with these settings would fail.
    return (problem if holder is None else warning)(
        name,
        f"taken by another program{owner}",
        "stop that, or choose another port with --set lamina.admin.listeners=HOST:PORT",
    )


def check_port(listener: Listener, *, holder: int | None) -> Finding:
    facts = _try(listener)
    is_plain = listener.protocol == "PLAINTEXT"
    if facts.is_taken and is_plain:
        facts = replace(facts, answering=_ask(listener))
    return judge_port(_shown(listener), facts, holder=holder, is_plain=is_plain)


def check_admin_port(listener: Listener, *, holder: int | None, gives_way: bool) -> Finding:
    """Asks nobody: what listens there is told by its process alone."""
    return judge_admin_port(_shown(listener), _try(listener), holder=holder, gives_way=gives_way)


def _shown(listener: Listener) -> str:
    return f"{listener.host or '*'}:{listener.port}"


def _try(listener: Listener) -> PortFacts:
    try:
        bind(listener, 1).socket.close()
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        owner = _owner(listener.port) if is_taken else None
        return PortFacts(error.strerror or str(error), is_taken, owner=owner)
    return PortFacts()


def _ask(listener: Listener) -> Answering | None:
    try:
        return probe("localhost" if listener.host in ("", "0.0.0.0", "::") else listener.host, listener.port)
    except OSError:
        return None


def _owner(port: int) -> str | None:
    """The process that listens on a port, as far as this user may see: ``process 4711, java``. Linux alone tells."""
    inodes = {f"socket:[{inode}]" for path in _CONNECTIONS for inode in _listening_inodes(path, port)}
    for link in glob.glob("/proc/[0-9]*/fd/*") if inodes else ():
        try:
            if os.readlink(link) in inodes:
                pid = link.split("/")[2]
                with open(f"/proc/{pid}/comm") as file:
                    return f"process {pid}, {file.read().strip()}"
        except OSError:
            continue
    return None


def _listening_inodes(path: str, port: int) -> list[str]:
    try:
        with open(path) as file:
            lines = [line.split() for line in file]
    except OSError:
        return []
    return [line[9] for line in lines[1:] if line[3] == _LISTENS and int(line[1].rpartition(":")[2], 16) == port]
