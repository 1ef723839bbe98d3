"""Makes the seeds of the corpus again, from real vectors and from what Lamina writes: `python -m fuzz.seeding`.

Deterministic; what was found by fuzzing stays. Must not know what a target does with a seed.
"""

import json
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import jwt
from cryptography import x509
from cryptography.x509.oid import NameOID

from fuzz import corpus
from fuzz.files import pack_files
from fuzz.targets import (
    certificate_names,
    identities,
    indexes,
    log_directories,
    logins,
    partition_logs,
    requests,
    responses,
    serving,
    setting_values,
    store_values,
    tokens,
    tools,
)
from lamina.broker.admin.routes import ROUTES
from lamina.coordinators.records import group_codec, transaction_codec
from lamina.coordinators.records.group_records import (
    ClassicGroupKey,
    ClassicGroupValue,
    ClassicMemberValue,
    ConsumerGroupKey,
    ConsumerGroupValue,
    GroupRecord,
    OffsetKey,
    OffsetValue,
    TargetAssignmentKey,
    TargetAssignmentValue,
    TargetEpochKey,
    TargetEpochValue,
)
from lamina.coordinators.records.transaction_records import Status, TransactionKey, TransactionRecord, TransactionValue
from lamina.image.changes import register_broker
from lamina.image.image import Broker, ConfigResource, Image, ResourceType
from lamina.image.topic import Topic, new_partition
from lamina.log.transaction_index import AbortedTransaction, pack_aborted
from lamina.records.batch import HEADER_BYTES, Codec
from lamina.records.codecs import compress
from lamina.records.marker import ControlType, build_marker
from lamina.records.record import Record, build_batch
from lamina.security.scram import ScramClient
from lamina.security.scram_credential import ScramMechanism
from lamina.settings.listeners import Listener
from lamina.store.metadata import MetadataStore
from lamina.store.producer_ids import ProducerIds
from lamina.store.sqlite import SqliteStore
from lamina.tls import pem
from lamina.wire import fetch_request, produce
from lamina.wire.api_keys import FETCH, PRODUCE
from lamina.wire.codec import encode_entity, encode_response
from lamina.wire.fetch_response import AbortedTransaction as Aborted
from lamina.wire.fetch_response import DivergingEpoch, PartitionFetched, TopicFetched, encode_fetch_response
from lamina.wire.fields import Entity, fields_of
from lamina.wire.headers import start_request
from lamina.wire.leaders import CurrentLeader, NodeEndpoint
from lamina.wire.versions import request_schema, response_schema
from tests.broker.admin.app_calls import TOKEN
from tests.compaction.story import START_MS, Story
from tests.log.building import NOW_MS, a_log
from tests.records import vectors
from tests.wire.messages import random_entity

Seeds = Iterator[tuple[str, bytes]]

_CAPTURED = Path(__file__).parents[1] / "tests" / "records" / "captured"
_API_KEYS = tuple(dict.fromkeys(api_key for api_key, _ in requests.OFFERED))
_SMALL_PAGE_BYTES = 512
_TOPIC_ID = bytes(range(16))


def main() -> None:
    for target, seeds in all_seeds():
        folder = corpus.ROOT / target
        folder.mkdir(parents=True, exist_ok=True)
        for path in corpus.files_of(target):
            if not path.name.startswith(corpus.FOUND):
                path.unlink()
        for name, data in seeds:
            (folder / name).write_bytes(data)


def all_seeds() -> Iterator[tuple[str, Seeds]]:
    """The seeds of each target."""
    yield "frames", _frames()
    yield "headers", _headers()
    yield "requests", _requests()
    yield "serving", _serving()
    yield "produce_requests", _bodies(PRODUCE, produce.VERSIONS)
    yield "fetch_requests", _bodies(FETCH, fetch_request.VERSIONS)
    yield "fetch_responses", _fetch_responses()
    yield "responses", _responses()
    yield "batches", _batches()
    yield "record_walks", _record_walks()
    yield "columns", _columns()
    yield "codecs", _codecs()
    yield "indexes", _indexes()
    yield "snapshots", _snapshots()
    yield "checkpoints", _checkpoints()
    yield "identities", _identities()
    yield "properties", _properties()
    yield "setting_values", _setting_values()
    yield "settings_files", _settings_files()
    yield "store_values", _store_values()
    yield "store_files", _store_files()
    yield "partition_logs", _partition_logs()
    yield "log_directories", _log_directories()
    yield "tools", _tools()
    yield "cleaning_passes", _cleaning_passes()
    yield "coordinator_records", _coordinator_records()
    yield "admin_http", _admin_http()
    yield "registry_values", _registry_values()
    yield "jaas", _jaas()
    yield "tokens", _tokens()
    yield "logins", _logins()
    yield "certificate_names", _certificate_names()
    yield "tls_handshakes", _tls_handshakes()


# The wire


def _fetch_responses() -> Seeds:
    for version in (4, 11, 12, 17):
        yield f"v{version}", bytes([fetch_request.VERSIONS.index(version)]) + _fetch_response(version, 7)[4:]


def _fetch_response(version: int, correlation_id: int) -> bytes:
    fetched = PartitionFetched(
        0,
        6,
        9,
        8,
        2,
        b"records",
        [Aborted(4, 6)],
        current_leader=CurrentLeader(2, 6),
        diverging_epoch=DivergingEpoch(1, 2),
    )
    topics = [TopicFetched("orders", UUID(int=7), [fetched])]
    pieces: list[Any] = list(
        encode_fetch_response(version, correlation_id, topics, 0, node_endpoints=[NodeEndpoint(2, "broker-2", 9092)])
    )
    return b"".join(pieces)


def _responses() -> Seeds:
    """What was asked for, one of each; the first bytes choose the sizes of pieces, how many calls and which."""
    for index, (call, version) in enumerate(responses.ASKED):
        key = call.api_key
        frame = (
            _fetch_response(version, 0)
            if key == FETCH
            else encode_response(_small_message(response_schema(key, version)), 0)
        )
        yield f"api-{key}-v{version}", bytes([9, 0, 200, 40, 0, index]) + frame
    refused = encode_response(response_schema(18, 0)(error_code=35, api_keys=()), 0)
    yield "refused-version", bytes([9, 0, 200, 40, 0, 0]) + refused
    yield "http", bytes([200, 200, 200, 200, 0, 1]) + b"HTTP/1.1 400 Bad Request\r\n\r\n"


def _frames() -> Seeds:
    frames = b"".join(struct.pack(">i", len(frame)) + frame for frame in (b"", b"first", bytes(200)))
    yield "three", bytes([3, 1, 0, 9, 0, 0, 40, 2]) + frames
    yield "http", bytes(8) + b"GET / HTTP/1.1\r\n"
    yield "large", bytes(8) + struct.pack(">i", 90_000) + bytes(500)


def _headers() -> Seeds:
    yield "plain", bytes(start_request(3, 1, 7, "a client"))[4:]
    yield "flexible", bytes(start_request(3, 12, 7, None))[4:]
    yield "tagged", bytes(start_request(18, 3, 7, "x"))[4:-1] + bytes([1, 5, 2, 0, 0])


def _requests() -> Seeds:
    """One of each API, in its last version."""
    last = {api_key: index for index, (api_key, _) in enumerate(requests.OFFERED)}
    for api_key, index in last.items():
        body = encode_entity(_small_message(request_schema(*requests.OFFERED[index])))
        yield f"api-{api_key}", bytes([index]) + body


def _serving() -> Seeds:
    """A few requests in a row, of an API and the next ones."""
    offered = [max(index for index, (each, _) in enumerate(requests.OFFERED) if each == key) for key in _API_KEYS]
    for first in range(0, len(offered), 3):
        yield (
            f"from-{_API_KEYS[first]}",
            b"".join(
                bytes([index]) + len(body).to_bytes(2, "big") + body
                for index in offered[first : first + 3]
                for body in [_about_orders(*requests.OFFERED[index])]
            ),
        )


def _about_orders(api_key: int, api_version: int) -> bytes:
    """A message whose names are those of the topic that is there."""
    made = _small_message(request_schema(api_key, api_version))
    return bytes(encode_entity(_renamed(made)))


def _renamed(entity: Entity) -> Entity:
    changes: dict[str, Any] = {}
    for field in fields_of(type(entity)):
        value = getattr(entity, field.name)
        if field.name in ("name", "topic", "resource_name") and isinstance(value, str):
            changes[field.name] = serving.TOPIC
        elif field.name in ("num_partitions", "count"):
            changes[field.name] = 2
        elif field.is_array and field.entity is not None and value:
            changes[field.name] = tuple(map(_renamed, value))
    return entity.replace(**changes)


def _bodies(api_key: int, versions: range) -> Seeds:
    for version in (versions[0], versions[len(versions) // 2], versions[-1]):
        yield (
            f"v{version}",
            bytes([version - versions[0]]) + encode_entity(_small_message(request_schema(api_key, version))),
        )


def _small_message(schema: Any) -> Any:
    """Of some random ones the one whose size is nearest to a line of text."""
    made = (random_entity(schema, Random(seed)) for seed in range(40))
    return min(made, key=lambda each: abs(len(encode_entity(each)) - 120))


# Records


def _batches() -> Seeds:
    sealed = bytes([1, 0, 0, 0, 0, 0])
    yield "two-records", sealed + vectors.V1
    yield "marker", sealed + vectors.V2
    yield "tombstone", sealed + vectors.V3
    yield "empty", sealed + vectors.V4
    for name in ("java-gzip", "java-lz4", "java-zstd"):
        yield name, sealed + (_CAPTURED / f"{name}.bin").read_bytes()
    records = [Record(number, NOW_MS + number, b"k", b"v" * 9, ((b"h", b"1"), (b"n", None))) for number in range(3)]
    yield "snappy", sealed + build_batch(records, codec=Codec.SNAPPY)
    for codec in Codec:
        yield f"to-{codec.name.lower()}", bytes([1, 1, 0, 1, 1, 1 + codec]) + build_batch(records)


def _record_walks() -> Seeds:
    for name, batch, count in (("two", vectors.V1, 1), ("three", vectors.V3, 2)):
        yield name, bytes([1, count]) + struct.pack(">qqq", 0, -5, 300_000) + batch[HEADER_BYTES:]


def _columns() -> Seeds:
    everything = bytes([1, 0, 0, 0, 0, 2, 0, 0, 0, 0])
    for name in ("java-gzip", "java-lz4", "java-zstd"):
        yield name, everything + (_CAPTURED / f"{name}.bin").read_bytes()
    log = bytearray()
    for number in range(3):
        records = [Record(number * 5 + at, NOW_MS, b"k", b"v" * 9, ((b"h", b"1"), (b"n", None))) for at in range(3)]
        log += build_batch(records, codec=(Codec.NONE, Codec.SNAPPY, Codec.ZSTD)[number])
    yield "three-batches", everything + log
    yield "cut-off", everything + log[:-7]
    yield "from-the-middle", bytes([1, 0, 6, 0, 12, 0, 0, 0, 0, 0]) + log
    yield "offsets-alone", bytes([1, 0, 0, 0, 0, 1, 0xFF, 0xF7, 0, 3]) + log
    aborted = build_batch(
        [Record(0, NOW_MS, b"k", b"no")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    kinds = {"offset": 1, "timestamp_ms": NOW_MS, "producer_id": 7, "producer_epoch": 0, "coordinator_epoch": 0}
    ended = aborted + build_marker(ControlType.ABORT, **kinds)
    yield "aborted", bytes([1, 0, 0, 0, 0, 2, 0, 0, 1, 1, 7, 0, 0]) + ended


def _codecs() -> Seeds:
    plain = b"a line of text, and again " * 8
    for codec in Codec:
        yield codec.name.lower(), bytes([0, codec, 1]) + compress(codec, plain)
    yield "plain-zstd", bytes([1, Codec.ZSTD, 2]) + plain
    yield "bare-snappy", bytes([0, Codec.SNAPPY, 1]) + bytes([5, 16]) + b"hello"


# Files of a partition


def _indexes() -> Seeds:
    offsets = b"".join(struct.pack(">ii", number * 3, number * 250) for number in range(1, 6))
    times = b"".join(struct.pack(">qi", NOW_MS + number, number * 3) for number in range(1, 6))
    aborted = b"".join(pack_aborted(AbortedTransaction(7, 10 + at, 12 + at, 13 + at)) for at in (0, 20, 60))
    files = dict(zip(indexes.NAMES, (offsets, times, aborted), strict=True))
    yield "three", struct.pack(">Hq", 2000, NOW_MS) + pack_files(indexes.NAMES, files)
    yield "none", struct.pack(">Hq", 0, 0) + pack_files(indexes.NAMES, dict.fromkeys(indexes.NAMES[:2], b""))


def _partition(*, clean: bool) -> dict[str, bytes]:
    """The files of a small log with several segments, an aborted transaction and two epochs."""
    with TemporaryDirectory() as root:
        builder = a_log(Path(root))
        producer = {"producer_id": 5, "producer_epoch": 0, "is_transactional": True}
        builder.append(b"a=1", b"b=2", base_sequence=0, **producer)
        builder.append(b"c=3", base_sequence=2, **producer)
        builder.abort(5)
        builder.log.roll(NOW_MS)
        builder.append(b"d=4", epoch=1, codec=Codec.GZIP)
        for number in range(5):
            builder.append(b"e=%d" % number, epoch=1, timestamp=NOW_MS + number)
        builder.log.roll(NOW_MS)
        builder.append(b"f=6", epoch=2)
        if clean:
            builder.reopen()
        builder.log.close()
        return {path.name: path.read_bytes() for path in sorted(builder.path.iterdir()) if path.stat().st_size < 1000}


def _snapshots() -> Seeds:
    producers = struct.pack(">qhiqiqiq", 5, 0, 2, 2, 0, NOW_MS, 0, -1) + struct.pack(
        ">qhiqiqiq", 6, 1, 9, 40, 3, NOW_MS, -1, 37
    )
    yield "two", bytes([1]) + struct.pack(">hIi", 1, 0, 2) + producers
    yield "unsealed", bytes([0]) + struct.pack(">hIi", 1, 0, 0)


def _checkpoints() -> Seeds:
    yield "offsets", b"0\n2\norders 0 17\norders 1 9\n"
    yield "epochs", b"0\n2\n0 0\n3 120\n"
    yield "empty", b"0\n0\n"


def _identities() -> Seeds:
    texts = (
        b"#\nversion=1\ncluster.id=AAECAwQFBgcICQoLDA0ODw\nnode.id=1\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\n",
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
        b'{"version":0,"brokerEpoch":-1}',
    )
    for index, (name, text) in enumerate(zip(identities.NAMES, texts, strict=True)):
        yield name.strip("."), bytes([index]) + text


def _partition_logs() -> Seeds:
    for name, flags in (("clean", (1, 1, 0, 0, 0)), ("crash", (1, 0, 0, 0, 0)), ("flushed", (1, 0, 1, 4, 2))):
        files = {each: data for each, data in _partition(clean=name == "clean").items() if each in partition_logs.NAMES}
        yield name, bytes(flags) + pack_files(partition_logs.NAMES, files)


def _log_directories() -> Seeds:
    contents = (
        b"version=1\ncluster.id=AAECAwQFBgcICQoLDA0ODw\nnode.id=1\n",
        b'{"version":0,"brokerEpoch":3}',
        b"0\n1\norders 0 2\n",
        b"0\n1\norders 0 3\n",
        b"0\n1\norders 0 1\n",
        b"0\n1\norders 0 0\n",
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
        b"0\n1\n0 0\n",
        bytes(build_batch([Record(offset, NOW_MS, b"key", b"value") for offset in range(3)], leader_epoch=0)),
    )
    files = dict(zip(log_directories.NAMES, contents, strict=True))
    yield "clean", pack_files(log_directories.NAMES, files)
    del files[log_directories.NAMES[1]]
    yield "crash", pack_files(log_directories.NAMES, files)
    del files[log_directories.NAMES[-1]]
    yield "no-log", pack_files(log_directories.NAMES, files)


def _tools() -> Seeds:
    files = {f"orders-0/{name}": data for name, data in _partition(clean=True).items()}
    files |= {"meta.properties": b"version=1\ncluster.id=AAECAwQFBgcICQoLDA0ODw\nnode.id=1\n"}
    files |= {"recovery-point-offset-checkpoint": b"0\n1\norders 0 11\n"}
    known = {name: data for name, data in files.items() if name in tools.NAMES}
    yield "table", bytes([1, 0, 0]) + pack_files(tools.NAMES, known)
    yield "json", bytes([1, 1, 1]) + pack_files(tools.NAMES, known)


def _cleaning_passes() -> Seeds:
    """Two segments with a key that comes again, a tombstone and a transaction; then what earlier passes leave."""
    stamp = START_MS
    for name, codec in (("plain", Codec.NONE), ("zstd", Codec.ZSTD)):
        story = Story()
        story.write([(b"a", b"1"), (b"b", b"2"), (None, b"3")], codec=codec)
        story.write([(b"a", b"4"), (b"b", None)], producer=11, transactional=True, codec=codec)
        story.end(11, commit=True)
        second = story.next_offset
        story.roll()
        story.write([(b"c", b"5"), (b"a", b"6")], codec=codec, has_headers=True)
        first, last = story.segments
        between = bytes([second - 1])
        yield (
            name,
            bytes([1, 0, 9, 1, 0, 11, 4, 1])
            + len(first.data).to_bytes(2, "big")
            + first.data
            + between
            + len(last.data).to_bytes(2, "big")
            + last.data,
        )
    old = build_batch([Record(0, stamp, b"a", None)], delete_horizon_ms=stamp - 1)
    yield "horizon", bytes([1, 0, 9, 0, 0, 11, 4, 0]) + len(old).to_bytes(2, "big") + old
    aborted = build_batch(
        [Record(0, stamp, b"a", b"1")], producer_id=11, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    entry = bytes([11, 0, 1, 2])
    yield "aborted", bytes([1, 1, 9, 0, 0, 11, 0, 0]) + entry + len(aborted).to_bytes(2, "big") + aborted


def _coordinator_records() -> Seeds:
    assigned = {_TOPIC_ID: (0, 1)}
    groups: list[GroupRecord] = [
        GroupRecord(OffsetKey("g", "orders", 0), OffsetValue(42, 7, "", 1000)),
        GroupRecord(
            ClassicGroupKey("g"),
            ClassicGroupValue(
                "consumer", 3, "range", "m", 1000, (ClassicMemberValue("m", None, "c", "/h", 9, 9, b"", b""),)
            ),
        ),
        GroupRecord(ConsumerGroupKey("k"), ConsumerGroupValue(2, 5)),
        GroupRecord(TargetEpochKey("k"), TargetEpochValue(2)),
        GroupRecord(TargetAssignmentKey("k", "m"), TargetAssignmentValue(assigned)),
    ]
    yield "groups", bytes([0]) + _puts(group_codec.encode_record(record) for record in groups)
    yield "tombstones", bytes([0]) + _puts((group_codec.encode_record(record)[0], None) for record in groups)
    value = TransactionValue(1000, 0, 60_000, Status.ONGOING, frozenset({("orders", 0)}), 5, 5)
    done = TransactionValue(1000, 1, 60_000, Status.COMPLETE_COMMIT, frozenset(), 6, 5)
    transactions = [TransactionRecord(TransactionKey("tx"), one) for one in (value, done)]
    for version in (0, 2):
        yield (
            f"transactions-{version}",
            bytes([1]) + _puts(transaction_codec.encode_record(record, version) for record in transactions),
        )


def _puts(pairs: Iterable[tuple[bytes, bytes | None]]) -> bytes:
    return b"".join(
        bytes([value is not None, len(key)]) + key + (b"" if value is None else len(value).to_bytes(2, "big") + value)
        for key, value in pairs
    )


def _admin_http() -> Seeds:
    """One request of each route, and some that are cut."""
    names = {"topic": "orders", "partition": "0", "group": "g", "logger": "lamina.log"}
    for number, route in enumerate(ROUTES):
        path = route.path.replace("{who:path}", "127.0.0.1:1").format(**names)
        body = b'{"level": "info"}' if route.method == "PUT" else b""
        yield f"route-{number}", bytes([0]) + _http(route.method, path, body)
    yield (
        "query",
        bytes([0]) + _http("GET", "/v1/cleaner/explain?topic=orders&partition=0&key=key&limit=2&after=1", b""),
    )
    whole = _http("GET", "/v1/topics?limit=1", b"")
    yield "two-parts", bytes([1]) + (20).to_bytes(2, "big") + whole
    yield "pipelined", bytes([0]) + whole + whole


def _http(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def _registry_values() -> Seeds:
    record = (
        b'{"type":"record","name":"R","fields":[{"name":"a","type":["null","string"]},{"name":"b","type":'
        b'{"type":"array","items":{"type":"long","logicalType":"timestamp-millis"}}},{"name":"m","type":{"type":"map",'
        b'"values":"double"}}]}'
    )
    other = (
        b'{"type":"record","name":"R","fields":[{"name":"b","type":{"type":"array","items":"float"}},'
        b'{"name":"c","type":"int","default":1}]}'
    )
    value = b"\x02\x02x\x04\x02\x04\x00\x02\x02k" + bytes(8) + b"\x00"
    yield "record", record + b"\n" + value
    yield "resolved", record + b"\t" + other + b"\n" + value
    yield (
        "recursive",
        b'{"type":"record","name":"L","fields":[{"name":"n","type":["null","L"]}]}\n' + b"\x02" * 9 + b"\0",
    )
    yield "nulls", b'{"type":"array","items":"null"}\n\x06\x00'
    decimal = b'{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}'
    yield "decimal", decimal + b"\n\x04\x01\x02"


# TLS


def _certificate_names() -> Seeds:
    parts = ((NameOID.ORGANIZATION_NAME, "Acme, Ltd"), (NameOID.EMAIL_ADDRESS, "a@b"), (NameOID.COMMON_NAME, "alice"))
    name = x509.Name([x509.NameAttribute(kind, value) for kind, value in parts])
    yield "name", bytes([certificate_names.NAME]) + name.public_bytes()
    blocks = pem.encode(pem.PRIVATE_KEY, bytes(range(70))) + pem.encode(pem.CERTIFICATE, b"certificate")
    yield "blocks", bytes([certificate_names.BLOCKS]) + blocks.encode()
    yield "rules", bytes([certificate_names.RULES]) + rb"RULE:^CN=(.*?),OU=a\/b,.*$/$1@team/U, DEFAULT"


def _tls_handshakes() -> Seeds:
    hello = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\xc0\x2b" + b"\x01\0"
    extensions = b"\0\x0a\0\x04\0\x02\0\x17" + b"\0\x0d\0\x04\0\x02\x04\x03"
    hello += len(extensions).to_bytes(2, "big") + extensions
    message = b"\x01" + len(hello).to_bytes(3, "big") + hello
    record = b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message
    yield "hello", b"\0" + record
    yield "hello-in-parts", b"\x02" + b"\0\x01" + record[:1] + b"\0\x05" + record[1:6] + record[6:]
    yield "two-hellos", b"\0" + record + record
    yield "plain", b"\0" + b"\0\0\0\x10\0\x12\0\0\0\0\0\x01\0\x04test"


# Settings and the store


def _properties() -> Seeds:
    yield "java", b"# a comment\n! another\nname = value\nlong.name: a \\\n   b\nun\\u00e9=\\ud83d\\ude00\nempty\n"


def _setting_values() -> Seeds:
    texts = {
        "boolean": b"true",
        "int": b"17",
        "long": b"-1",
        "short": b"3",
        "double": b"0.5",
        "list": b"delete,compact",
    }
    seen = set()
    for index, setting in enumerate(setting_values.SETTINGS):
        if setting.kind.name not in seen:
            seen.add(setting.kind.name)
            yield setting.kind.name, bytes([index]) + texts.get(setting.kind.name, b"PLAINTEXT://127.0.0.1:9092")


def _settings_files() -> Seeds:
    yield (
        "broker",
        bytes([0])
        + (
            b"node.id=1\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\nadvertised.listeners=PLAINTEXT://[::1]:9092\n"
            b"controller.listener.names=CONTROLLER\nlistener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
            b"log.retention.hours=168\nnum.partitions=3\n"
        ),
    )
    yield "topic", bytes([1]) + b"cleanup.policy=compact,delete\nretention.ms=-1\nsegment.bytes=1048576\n"


def _jaas() -> Seeds:
    module = b"org.apache.kafka.common.security.plain.PlainLoginModule"
    yield "plain", module + b' required\n  username="admin" password="a\\"b\\\\" // comment\n  user_admin="secret";'
    yield "comments", module + b" /* a */ SUFFICIENT key='\\101' word=a-b.c ;"


def _tokens() -> Seeds:
    claims = {"sub": "alice", "iss": "issuer", "aud": ["kafka"], "scope": "read write", "iat": 1, "exp": 2**40}
    payload = json.dumps(claims).encode()
    keys = b'{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"first","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'
    front = bytes([1]) + len(keys).to_bytes(2, "big") + keys + len(payload).to_bytes(2, "big") + payload
    unsecured = jwt.encode(claims, "", "none").encode()
    yield "signed", front + jwt.encode(claims, tokens.issuer(), "EdDSA", {"kid": "first"}).encode()
    yield "unsecured", front + unsecured
    yield "message", front + b"n,a=alice,\x01auth=Bearer " + unsecured + b"\x01\x01"


def _logins() -> Seeds:
    client = ScramClient(ScramMechanism.SHA_256, "alice", "nonce")
    plain = f"\0alice\0{logins.PASSWORD}".encode()
    yield "plain", _said((logins.VERSIONS, b""), (logins.HANDSHAKE, b"\1\0"), (logins.AUTHENTICATE, b"\2", plain))
    yield "bare", _said((logins.HANDSHAKE, b"\0\0"), (logins.BARE, b"", plain))
    yield "scram", _said((logins.HANDSHAKE, b"\1\1"), (logins.AUTHENTICATE, b"\1", client.first()))
    final = b"c=biws,r=nonce,p=AAAA"
    yield "wrong", _said((logins.HANDSHAKE, b"\0\2"), (logins.BARE, b"", client.first()), (logins.BARE, b"", final))
    yield "gssapi", _said((logins.HANDSHAKE, b"\1\3"), (logins.OTHER, b"", b"\0\0\0\0"))


def _said(*messages: tuple[int, bytes] | tuple[int, bytes, bytes]) -> bytes:
    """A kind, what it takes, and bytes with their length."""
    said = b""
    for kind, taken, *rest in messages:
        said += bytes([kind]) + taken + b"".join(len(one).to_bytes(2, "big") + one for one in rest)
    return said


def _image() -> Image:
    topic = Topic("orders", _TOPIC_ID, (new_partition((1,)), new_partition((1,))))
    image = Image(
        "a-cluster",
        topics={"orders": topic},
        topic_names={topic.id: topic.name},
        configs={
            ConfigResource(ResourceType.TOPIC, "orders"): {"retention.ms": "1"},
            ConfigResource(ResourceType.BROKER, ""): {"num.io.threads": "2"},
        },
        controller_id=1,
    )
    return register_broker(image, Broker(1, {"P": Listener("P", "PLAINTEXT", "localhost", 9092)}))


def _store_values() -> Seeds:
    entries: dict[str, bytes] = {}
    store = store_values.DictStore(entries)
    MetadataStore(store, "a-cluster").save(_image())
    ProducerIds(store).next_block()
    yield "image", pack_files(store_values.PATHS, entries)


def _store_files() -> Seeds:
    """In small pages, so that the file is small."""
    with TemporaryDirectory() as root:
        path = f"{root}/metadata.db"
        with closing(sqlite3.connect(path)) as database:
            database.execute(f"PRAGMA page_size = {_SMALL_PAGE_BYTES}")
            database.execute("VACUUM")
        store = SqliteStore(path)
        MetadataStore(store, "a-cluster").save(_image())
        store.close()
        yield "image", Path(path).read_bytes()


if __name__ == "__main__":
    main()
