"""What to type for those who know Kafka's tools, or another program's commands.

Owns the names and options that Lamina does not have, each with what it has instead. Must not parse Lamina's own
command line.
"""

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence

KAFKA_TOOLS = {
    "console-consumer": "consume",
    "console-producer": "produce",
    "consumer-groups": "groups",
    "consumer-perf-test": "bench consume",
    "delete-records": "topics delete-records",
    "dump-log": "dump",
    "explain": "cleaner explain",
    "get-offsets": "topics offsets",
    "help": "--help",
    "leader-election": "topics elect",
    "list": "topics list",
    "producer-perf-test": "bench produce",
    "reassign-partitions": "topics reassign",
    "run": "serve",
    "server-start": "serve",
    "start": "serve",
    "status": "brokers",
    "version": "--version",
}
"""Kafka's scripts, without ``kafka-`` and ``.sh``, where the command has another name; and words of other programs."""

OTHER_WORDS: Mapping[str, Mapping[str, str]] = {
    "lamina": KAFKA_TOOLS,
    "lamina cluster": {"add": "add-broker", "down": "stop", "list": "status", "ps": "status", "start": "up"},
}
"""By the path of the group: what other programs call its commands."""

_OPTION = re.compile(r"--[a-z-]+")
_STOP = "press Ctrl-C where `lamina serve` runs, or send that process SIGTERM"
_LISTEN = "give --listen 127.0.0.1:PORT"

_ADVICE: Mapping[tuple[str, str], str] = {
    ("lamina", "stop"): _STOP,
    ("lamina", "server-stop"): _STOP,
    ("lamina", "--port"): "give `lamina serve --listen 127.0.0.1:PORT`",
    ("lamina serve", "--port"): _LISTEN,
    ("lamina doctor", "--port"): _LISTEN,
    ("lamina cluster up", "--port"): "give --base-port P: broker 1 gets it, the others follow",
    ("lamina cluster add-broker", "--port"): "leave it out: the broker gets the next port that is free",
    ("lamina brokers", "undrain"): "`lamina brokers rebalance --leaders` gives a drained broker its leaders back",
    ("lamina topics", "set"): "give `lamina configs set --topic TOPIC KEY=VALUE`",
    ("lamina topics", "config"): "give `lamina configs get --topic TOPIC`, or `set`",
    ("lamina topics create", "--set"): "give --config KEY=VALUE",
    ("lamina consume", "-n"): "give --count N",
    ("lamina produce", "--property"): "give --key-separator : for lines of the form KEY:VALUE",
    ("lamina consume", "--property"): r"give --format '%k\t%v' to print keys too",
    ("lamina topics elect", "--election-type"): "give --unclean for an unclean election, nothing for a preferred one",
    ("lamina topics elect", "--all-topic-partitions"): "give --all",
    ("lamina topics elect", "--path-to-json-file"): "give --file FILE",
    ("lamina topics reassign", "--reassignment-json-file"): "give --file FILE",
    ("lamina topics reassign", "--topics-to-move-json-file"): "give --topics-file FILE, or the topics themselves",
    ("lamina topics reassign", "--broker-list"): "give --brokers 1,2,3",
    ("lamina consume", "--offset"): "give --from WHERE: an offset, earliest or latest",
}
"""By the command's path and what was typed."""

_ADVICE_ANYWHERE = {
    "--port": "give --bootstrap-server HOST:PORT",
    "--broker-list": "give --bootstrap-server HOST:PORT",
    "--entity-type": "give --topic TOPIC, --broker ID or --broker-default",
    "--entity-name": "give --topic TOPIC, --broker ID or --broker-default",
    "--entity-default": "give --broker-default",
    "--add-config": "give `lamina configs set`, and KEY=VALUE without an option",
    "--delete-config": "give `lamina configs unset`, and NAME without an option",
}


def advice(path: str, typed: str, options: Collection[str] | None = None) -> str | None:
    """What to do instead of a name or an option that the command at ``path`` does not have.

    ``options`` are those of the command; ``None`` where they are not known yet.
    """
    bare = typed.lower().removeprefix("kafka-").removesuffix(".sh")
    if (path, bare) in _ADVICE:
        return _ADVICE[path, bare]
    anywhere = _ADVICE_ANYWHERE.get(typed)
    if anywhere is None or options is None:
        return anywhere
    named = _OPTION.findall(anywhere)
    return anywhere if not named or any(one in options for one in named) else None


def translation(path: str, args: Sequence[str]) -> str | None:
    """The command for a line of kafka-topics or kafka-configs that only Kafka's tools have the words for."""
    translate = _TRANSLATIONS.get(path)
    return None if translate is None else translate(_given(args))


def _given(args: Sequence[str]) -> dict[str, str]:
    """Options with their values; an action may be an option or the first word."""
    given: dict[str, str] = {}
    name = ""
    for arg in args:
        if arg.startswith("--"):
            name, _, value = arg.partition("=")
            given[name] = value
        elif name:
            given[name], name = arg, ""
        elif not given:
            given[f"--{arg}"] = ""
    return given


def _topics(given: Mapping[str, str]) -> str | None:
    if "--alter" not in given:
        return None
    topic = given.get("--topic") or "TOPIC"
    where = _where(given)
    if "--config" in given or "--delete-config" in given:
        return _line("configs", "set", "--topic", topic, given.get("--config") or "KEY=VALUE", *where)
    return _line("topics", "add-partitions", topic, "--total", given.get("--partitions") or "N", *where)


def _configs(given: Mapping[str, str]) -> str | None:
    if not given.keys() & {"--alter", "--describe", "--entity-type", "--entity-name", "--entity-default"}:
        return None
    name = given.get("--entity-name")
    if given.get("--entity-type", "").startswith("broker") or "--broker" in given:
        name = name or given.get("--broker")
        resource = ["--broker-default"] if "--entity-default" in given else ["--broker", name or "ID"]
    else:
        resource = ["--topic", name or given.get("--topic") or "TOPIC"]
    resource += _where(given)
    if "--delete-config" in given:
        return _line("configs", "unset", *resource, *(given["--delete-config"] or "NAME").split(","))
    if "--alter" in given or "--add-config" in given:
        return _line("configs", "set", *resource, *_pairs(given.get("--add-config") or "KEY=VALUE"))
    return _line("configs", "get", *resource)


def _pairs(text: str) -> list[str]:
    """Kafka puts brackets around a value that has commas."""
    pairs: list[str] = []
    for part in text.split(","):
        if "=" in part or not pairs:
            pairs.append(part)
        else:
            pairs[-1] += f",{part}"
    return [pair.replace("=[", "=").removesuffix("]") for pair in pairs]


def _where(given: Mapping[str, str]) -> list[str]:
    server = given.get("--bootstrap-server")
    return ["--bootstrap-server", server] if server else []


def _line(*words: str) -> str:
    return shlex.join(["lamina", *words])


_TRANSLATIONS: Mapping[str, Callable[[Mapping[str, str]], str | None]] = {
    "lamina topics": _topics,
    "lamina configs": _configs,
}
