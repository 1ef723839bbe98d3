"""The routes: which path is answered by what. One line each; docs/admin.md says what comes back.

Must not know how an answer is made.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin import (
    brokers,
    cleaner,
    explaining,
    groups,
    health,
    log_levels,
    logs,
    read_leases,
    requests,
    topics,
    transactions,
)
from lamina.broker.admin.access import Need
from lamina.broker.admin.answers import json_answer
from lamina.broker.admin.subject import Subject


class AdminRoute(NamedTuple):
    method: str
    path: str
    handle: Callable[[Subject, Request], Awaitable[Response]]
    summary: str
    need: Need = Need.READING


_ROLES = {Need.NOTHING: None, Need.READING: "viewer", Need.RECORDS: "viewer", Need.CHANGING: "operator"}


async def index(subject: Subject, _request: Request) -> Response:
    return json_answer(
        {
            "routes": [
                {
                    "method": one.method,
                    "path": one.path,
                    "summary": one.summary,
                    "needs_token": not subject.access.allows(one.need, None),
                    "role": _ROLES[one.need],
                }
                for one in ROUTES
            ]
        }
    )


_PARTITION = "/v1/topics/{topic}/partitions/{partition}"

ROUTES = (
    AdminRoute("GET", "/healthz", health.alive, "the process is alive and its loop turns", Need.NOTHING),
    AdminRoute("GET", "/readyz", health.ready, "200 if clients should come, 503 with reasons if not", Need.NOTHING),
    AdminRoute("GET", "/metrics", health.metrics, "every number, in Prometheus's text format"),
    AdminRoute("GET", "/v1/", index, "these routes"),
    AdminRoute("GET", "/v1/brokers", brokers.brokers, "the cluster and its brokers"),
    AdminRoute("GET", "/v1/cleaner", cleaner.status, "the compacted partitions: how dirty, since when, what is wrong"),
    AdminRoute("GET", "/v1/cleaner/explain", explaining.explained, "why a record is still there", Need.RECORDS),
    AdminRoute("GET", "/v1/cleaner/history", cleaner.history, "the last passes, with their figures"),
    AdminRoute("GET", "/v1/connections", brokers.connections, "who is connected"),
    AdminRoute("GET", "/v1/followed", requests.followed, "whose requests are logged one by one"),
    AdminRoute("PUT", "/v1/followed/{who:path}", requests.follow, "log those of one more", Need.CHANGING),
    AdminRoute("DELETE", "/v1/followed/{who:path}", requests.unfollow, "no longer", Need.CHANGING),
    AdminRoute("GET", "/v1/groups", groups.groups, "the consumer groups"),
    AdminRoute("GET", "/v1/groups/{group}", groups.group, "one group and its members"),
    AdminRoute("GET", "/v1/groups/{group}/offsets", groups.offsets, "its committed offsets and their lag"),
    AdminRoute("GET", "/v1/log-levels", log_levels.log_levels, "the level of each logger"),
    AdminRoute("PUT", "/v1/log-levels/{logger}", log_levels.set_log_level, "change it for one", Need.CHANGING),
    AdminRoute("DELETE", "/v1/log-levels/{logger}", log_levels.unset_log_level, "back to its default", Need.CHANGING),
    AdminRoute("GET", "/v1/logs", logs.directories, "the log directories"),
    AdminRoute(
        "GET", "/v1/read-leases", read_leases.read_leases, "who reads files of this broker, and what that keeps"
    ),
    AdminRoute("GET", "/v1/settings", brokers.settings, "what every setting is, and from where"),
    AdminRoute("GET", "/v1/slow-requests", requests.slow_requests, "the last slow requests and where their time went"),
    AdminRoute("GET", "/v1/topics", topics.topics, "the topics"),
    AdminRoute("GET", "/v1/topics/{topic}", topics.topic, "one topic"),
    AdminRoute("POST", "/v1/topics/{topic}/compact", cleaner.compact, "compact it now", Need.CHANGING),
    AdminRoute("GET", "/v1/topics/{topic}/partitions", topics.partitions, "its partitions"),
    AdminRoute("GET", _PARTITION, topics.partition, "one partition: leader, offsets, size"),
    AdminRoute("GET", f"{_PARTITION}/segments", logs.segments, "its segments: offsets, sizes, times"),
    AdminRoute("GET", "/v1/transactions", transactions.transactions, "transactional ids and what each has open"),
)
