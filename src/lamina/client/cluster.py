"""A cluster as a command sees it: where it is, how to speak to it, and whether anybody answers.

Owns the clients' configuration and the sentence for a cluster that cannot be reached. librdkafka is imported when
the first client is made. Must not know any command.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from lamina.client.errors import ClientError, Refused, Unreachable, broker_of, sentence, why_silent, why_unreachable
from lamina.client.properties import translate
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.peer.addresses import DEFAULT_BOOTSTRAP_SERVERS
from lamina.peer.security_properties import (
    SecurityPropertyError,
    is_security,
    refuse_dangerous,
    security_of_connections,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

    from lamina.peer.cluster import ClusterClient

logger = logging.getLogger(__name__)

T = TypeVar("T")

REQUEST_SECONDS = 30.0
_REACH_SECONDS = 10.0
METADATA_SECONDS = 3.0
BROKER_SECONDS = 5.0
"""How long one broker among several is waited for."""
_CONTROLLER_SECONDS = 2.0
"""How long the controller may take before others are asked whether the cluster is there."""
_REFUSED_SECONDS = 1.0
"""When every address refuses at once there is nothing to wait for, except a broker that is just starting."""
_GONE_SECONDS = 3.0
"""How long a cluster whose every broker went away in the middle may take to come back."""
_POLL_SECONDS = 0.05
LOST = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_DESTROY_BROKER")
"""librdkafka's names for a connection that is gone or never was; the last one for a broker that it knows no more."""
SILENT = (*LOST, "_TIMED_OUT", "REQUEST_TIMED_OUT")
"""A broker that did not answer in time."""
LEADER_MOVED = ("NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH")
"""A broker that does not lead the partition any more, or not yet."""
LEADER_AWAY = (*SILENT, *LEADER_MOVED)
UNANSWERED = -1001
"""librdkafka's offset for a partition whose leader it did not reach in time."""
_UNKNOWN_PROPERTY = re.compile(r'No such configuration property: "(?P<name>[^"]+)"')
_SILENT = logging.getLogger(f"{__name__}.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class Cluster:
    """Makes clients of one cluster."""

    def __init__(
        self,
        bootstrap_servers: str = DEFAULT_BOOTSTRAP_SERVERS,
        properties: Mapping[str, str] | None = None,
        warn: Callable[[str], None] = logger.warning,
        clocks: Clocks = SYSTEM_CLOCKS,
    ) -> None:
        self._clocks = clocks
        self.bootstrap_servers = bootstrap_servers
        self._config: dict[str, Any] = {"client.id": "lamina", **translate(properties or {})}
        self.security = {name: text for name, text in (properties or {}).items() if is_security(name)}
        """Those of the properties that are about TLS and logins."""
        self._security = security_of_connections(self.security)
        """Of these, those that are about brokers: the admin listener may have TLS where theirs have none."""
        self._config["bootstrap.servers"] = bootstrap_servers
        self._warn = warn
        self._admin: AdminClient | None = None
        self._last_error: KafkaError | None = None
        self._are_all_down = False
        self._is_controller_silent = False
        self._refusing: set[int] = set()
        """Brokers to which a connection failed."""

    # Clients

    def admin(self) -> "AdminClient":
        """The admin client, once the cluster has answered."""
        if self._admin is None:
            self._admin = self.untried_admin()
            self._reach(self._admin)
        return self._admin

    def untried_admin(self) -> "AdminClient":
        """An admin client of a cluster that may not be there."""
        from confluent_kafka.admin import AdminClient

        admin: AdminClient = self._make(AdminClient, {})
        return admin

    def producer(self, config: Mapping[str, Any] | None = None) -> "Producer":
        from confluent_kafka import Producer

        producer: Producer = self._make(Producer, config or {})
        return producer

    def consumer(self, config: Mapping[str, Any] | None = None) -> "Consumer":
        """A consumer that commits nothing and makes no topics unless ``config`` says so."""
        from confluent_kafka import Consumer

        quiet = {"group.id": "lamina-without-group", "enable.auto.commit": False, "allow.auto.create.topics": False}
        consumer: Consumer = self._make(Consumer, {**quiet, **(config or {})})
        return consumer

    def ask(self, work: "Callable[[ClusterClient], Awaitable[T]]") -> T:
        """What librdkafka cannot ask."""
        from lamina.client.own_requests import ask
        from lamina.peer.limits import Limits

        # Says at once, and why, when no broker answers.
        self.admin()
        limits = Limits(api_timeout_ms=round(REQUEST_SECONDS * 1000))
        return ask(self.bootstrap_servers, self._config["client.id"], self._security, limits, work)

    def _make(self, client: Callable[..., Any], config: Mapping[str, Any]) -> Any:
        """A property that librdkafka does not know is named and left out, but never one of security."""
        from confluent_kafka import KafkaException

        while True:
            try:
                return client({**self._config, **config, "error_cb": self._remember}, logger=_SILENT)
            except KafkaException as error:
                unknown = _UNKNOWN_PROPERTY.search(str(error))
                name = unknown["name"] if unknown else None
                if name is None or name not in self._config:
                    raise ClientError(self._why_unusable(error.args[0])) from error
                try:
                    refuse_dangerous(name, str(self._config[name]))
                except SecurityPropertyError as dangerous:
                    raise ClientError(str(dangerous)) from error
                del self._config[name]
                self._warn(f"librdkafka has no property {name}; it is ignored")

    def _why_unusable(self, error: "KafkaError") -> str:
        from lamina.client.listener_probe import why_unusable

        return why_unusable(self._security) or f"the client properties cannot be used: {sentence(error)}"

    def _remember(self, error: "KafkaError") -> None:
        from confluent_kafka import KafkaError

        # That all brokers are down follows from what was said of each; the reason is in the line before.
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._are_all_down = True
        else:
            self._last_error = error
            broker_id = broker_of(error)
            if error.name() in LOST and broker_id is not None:
                self._refusing.add(broker_id)

    @property
    def shows_who_asks(self) -> bool:
        """Whether brokers may tell one user less than another."""
        return str(self._config.get("security.protocol", "plaintext")).lower() != "plaintext"

    def given(self, *names: str) -> str | None:
        """What the properties say under one of these names."""
        return next((self._config[name] for name in names if name in self._config), None)

    # Trouble

    @property
    def has_errors(self) -> bool:
        """Whether a client told of an error since they were last forgotten."""
        return self._last_error is not None or self._are_all_down

    def forget_errors(self) -> None:
        self._last_error = None
        self._are_all_down = False

    # Asking

    def answer(self, future: "Future[T]", seconds: float = REQUEST_SECONDS) -> T:
        """What the admin client was answered; raises Unreachable when all brokers go away meanwhile."""
        self._await(future, _GONE_SECONDS, seconds)
        if not future.done():
            raise _no_answer(seconds)
        try:
            return answer_of(future)
        except Refused as error:
            if error.name in LOST:
                raise (self.unreachable() if self._has_nobody() else self._one_silent()) from error
            raise

    def _has_nobody(self) -> bool:
        """Whether all brokers are down: librdkafka tells it a moment after the failure of the last one."""
        assert self._admin is not None
        deadline = self._clocks.monotonic_seconds() + _REFUSED_SECONDS
        while not self._are_all_down and self._clocks.monotonic_seconds() < deadline:
            self._admin.poll(_POLL_SECONDS)
        return self._are_all_down

    def await_brokers(self, asked: "Sequence[tuple[int, Future[T]]]") -> None:
        """Until brokers have answered, or for so long that the others will not: a refusal is believed soon."""
        admin = self.admin()
        began = self._clocks.monotonic_seconds()
        while waiting := [broker_id for broker_id, future in asked if not future.done()]:
            waited = self._clocks.monotonic_seconds() - began
            if waited > BROKER_SECONDS or (waited > _REFUSED_SECONDS and self._refusing.issuperset(waiting)):
                return
            admin.poll(_POLL_SECONDS)

    def is_controller_silent(self) -> bool:
        """Whether brokers answer and the controller, which librdkafka asks most things, did not when it was reached."""
        self.admin()
        return self._is_controller_silent

    def _reach(self, admin: "AdminClient") -> None:
        answer = admin.describe_cluster(request_timeout=_REACH_SECONDS)
        self._await(answer, _REFUSED_SECONDS, _CONTROLLER_SECONDS)
        if not answer.done() and self._has_broker(admin):
            self._is_controller_silent = not answer.done()
            return
        self._await(answer, _REFUSED_SECONDS, _REACH_SECONDS)
        try:
            answer_of(answer, 1)
        except Refused as error:
            if error.name in (*LOST, "_TIMED_OUT"):
                raise self.unreachable() from error
            raise

    def _has_broker(self, admin: "AdminClient") -> bool:
        """Whether any broker answers."""
        from confluent_kafka import KafkaException

        try:
            admin.list_topics(timeout=METADATA_SECONDS)
        except KafkaException:
            return False
        return True

    def _await(self, future: "Future[T]", down_seconds: float, seconds: float) -> None:
        """Until it is done or ``seconds`` are over; gives up when all brokers stay down."""
        assert self._admin is not None
        began = self._clocks.monotonic_seconds()
        down_since: float | None = None
        while not future.done() and self._clocks.monotonic_seconds() - began < seconds:
            self._admin.poll(_POLL_SECONDS)
            if self._are_all_down:
                down_since = down_since or self._clocks.monotonic_seconds()
                if self._clocks.monotonic_seconds() - down_since > down_seconds:
                    raise self.unreachable()

    def unreachable(self) -> Unreachable:
        from lamina.client.listener_probe import why_not_as_spoken

        error = self._last_error
        # A name without an address would be looked up again, for as long.
        is_named = error is None or error.name() != "_RESOLVE"
        reason = why_not_as_spoken(self.bootstrap_servers, self._security) if is_named else None
        return Unreachable(reason or why_unreachable(self.bootstrap_servers, error))

    def _one_silent(self) -> ClientError:
        return ClientError(why_silent(self._last_error))


def answer_of(future: "Future[T]", seconds: float = REQUEST_SECONDS) -> T:
    """What a cluster answered; its error as a ClientError."""
    from confluent_kafka import KafkaException

    try:
        return future.result(seconds)
    except KafkaException as error:
        raise Refused(error.args[0]) from error
    except TimeoutError as error:
        raise _no_answer(seconds) from error


def _no_answer(seconds: float) -> ClientError:
    return ClientError(f"no answer within {seconds:g} s; look at the broker's log, or try again")
