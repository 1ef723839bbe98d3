"""``/v1/brokers``, ``/v1/connections``, ``/v1/settings``: brokers, who is connected to this one, what is set here."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lamina import __version__
from lamina.broker.admin.answers import json_answer, page, window
from lamina.broker.admin.subject import Subject
from lamina.broker.metrics.replication_tally import ReplicationTally, tally_replication
from lamina.broker.network.connection import Connection
from lamina.image.image import Broker
from lamina.settings.definition import Setting, Update
from lamina.settings.lists import BROKER_SETTINGS


async def brokers(subject: Subject, _request: Request) -> Response:
    image = subject.metadata.image
    tally = await tally_replication(subject.metadata, subject.partitions, subject.clocks)
    return json_answer(
        {
            "cluster_id": image.cluster_id,
            "controller_id": image.controller_id,
            "brokers": [_broker_row(subject, broker, tally) for _, broker in sorted(image.brokers.items())],
        }
    )


def _broker_row(subject: Subject, broker: Broker, tally: ReplicationTally) -> dict[str, Any]:
    is_this = broker.id == subject.metadata.node_id
    return {
        "node_id": broker.id,
        "rack": broker.rack,
        "is_controller": broker.id == subject.metadata.image.controller_id,
        "is_this_broker": is_this,
        "endpoints": [
            {"name": name, "host": endpoint.host, "port": endpoint.port} for name, endpoint in broker.endpoints.items()
        ],
        "admin": [listener.address for listener in subject.advertised] if is_this else None,
        "version": __version__ if is_this else None,
        "started_ms": subject.started_ms if is_this else None,
        "partitions": len(subject.partitions) if is_this else None,
        "connections": len(subject.connections) if is_this else None,
        "low_log_dirs": [space.path for space in subject.directories.low] if is_this else None,
        "replication": _replication(subject, tally) if is_this else None,
    }


def _replication(subject: Subject, tally: ReplicationTally) -> dict[str, Any]:
    topics = list(subject.counters.topics.values())
    return {
        "now_ms": subject.clocks.now_ms(),
        "leader_partitions": tally.led,
        "under_replicated_partitions": tally.under_replicated,
        "under_min_isr_partitions": tally.under_min_isr,
        "offline_partitions": tally.without_leader,
        "replica_max_lag": subject.metrics.replica_max_lag(),
        "is_session_proven": subject.metrics.is_session_proven(),
        "was_session_proven": subject.metrics.was_session_proven(),
        "in_bytes": sum(one.in_bytes for one in topics),
        "out_bytes": sum(one.out_bytes for one in topics),
    }


async def connections(subject: Subject, request: Request) -> Response:
    limit, after = window(request)
    now = subject.loop.time()
    found = [one for one in subject.connections if after is None or one.peer > after]
    found.sort(key=lambda one: one.peer)
    return await page(
        subject.clocks, "connections", found, limit, lambda one: _connection_row(one, now), lambda one: one.peer
    )


def _connection_row(connection: Connection, now: float) -> dict[str, Any]:
    return {
        "id": connection.id,
        "peer": connection.peer,
        "listener": connection.listener_name,
        "client_id": connection.client_id,
        "client_software": connection.client_software or None,
        "opened_ms": connection.opened_at_ms,
        "requests": connection.requests,
        "in_bytes": connection.bytes_in,
        "out_bytes": connection.bytes_out,
        "idle_ms": round(max(now - connection.active_at, 0) * 1000),
        "is_waiting": connection.is_waiting,
        "is_muted": connection.is_muted,
        "principal": connection.principal,
    }


async def settings(subject: Subject, _request: Request) -> Response:
    return json_answer({"settings": [_setting_row(subject, setting) for _, setting in sorted(BROKER_SETTINGS.items())]})


def _setting_row(subject: Subject, setting: Setting[Any]) -> dict[str, Any]:
    resolved = subject.metadata.settings.resolved(setting)
    value = None if resolved is None else setting.format(resolved.value)
    return {
        "name": setting.name,
        "value": None if setting.sensitive else subject.actual_values.get(setting.name, value),
        "source": "default" if resolved is None else resolved.source.name.lower(),
        "type": setting.kind.name,
        "is_dynamic": setting.update is not Update.READ_ONLY,
        "is_sensitive": setting.sensitive,
        "doc": setting.doc,
    }
