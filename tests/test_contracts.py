"""Every import contract can fail: one forbidden import breaks it, and the contracts that have nothing against it hold.

The graph of imports is read once, as ``lint-imports`` reads it; a forbidden import is one more edge in a copy of it.
"""

from copy import deepcopy
from functools import cache
from pathlib import Path

import grimp
import pytest
from importlinter import Contract
from importlinter.api import read_configuration
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract

ROOT = Path(__file__).parents[1]
CONFIGURATION = read_configuration(str(ROOT / "pyproject.toml"))
SESSION = CONFIGURATION["session_options"]
TYPES: dict[str, type[Contract]] = {
    "forbidden": ForbiddenContract,
    "layers": LayersContract,
    "protected": ProtectedContract,
}

FORBIDDEN = {
    "rooms": ("lamina.records.varint", "lamina.image.topic"),
    "broker": ("lamina.broker.partitions.partition", "lamina.broker.cleaner.history"),
    "files": ("lamina.log.segment", "os"),
    "pure": ("lamina.controller.placement", "random"),
    "clocks": ("lamina.log.segment", "time"),
    "await": ("lamina.log.segment", "asyncio"),
    "spark": ("lamina.log.segment", "pyspark"),
    "source": ("pyspark_lamina.columns", "pyspark_lamina.default_source"),
    "source-install": ("pyspark_lamina.columns", "lamina.log"),
    "source-unknown": ("lamina.arrow.reading", "pyspark_lamina.columns"),
    "client": ("lamina.broker.parts", "confluent_kafka"),
    "http": ("lamina.store.values", "starlette"),
    "http-start": ("lamina.broker.admin.listening", "lamina.broker.admin.serving"),
    "avro": ("lamina.schema_registry.avro_decoding", "fastavro"),
    "job": ("lamina.broker.parts", "lamina.cleaning.clean_log"),
    "schemas": ("lamina.wire.fields", "kio"),
    "peer": ("lamina.peer.routes", "random"),
    "zookeeper": ("lamina.store.opening", "lamina.store.zookeeper"),
    "kernel": ("lamina.records.validate", "lamina.records.kernel"),
}
"""By contract, who may not import whom."""

ALSO_BROKEN = {"http": {"http-start"}, "kernel": {"job"}}
"""What one forbidden import cannot but break besides: the broker starts with the store, so it starts with Starlette;
the kernel is made of the native reader, so a broker's start would have that too."""


@cache
def contracts() -> dict[str, Contract]:
    return {
        options["id"]: TYPES[options["type"]](name=options["name"], session_options=SESSION, contract_options=options)
        for options in CONFIGURATION["contracts_options"]
    }


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*SESSION["root_packages"], include_external_packages=True, cache_dir=None)


def broken(imports: grimp.ImportGraph) -> set[str]:
    """The contracts that a graph breaks; each is shown a copy, for it may take out what it ignores."""
    return {
        name
        for name, contract in contracts().items()
        if not contract.check(graph=deepcopy(imports), verbose=False).kept
    }


def test_every_contract_has_a_forbidden_import_here() -> None:
    assert contracts().keys() == FORBIDDEN.keys()


def test_the_package_as_it_is_keeps_them_all() -> None:
    assert broken(graph()) == set()


@pytest.mark.parametrize("contract", FORBIDDEN)
def test_a_forbidden_import_breaks_its_contract_and_no_other(contract: str) -> None:
    importer, imported = FORBIDDEN[contract]
    imports = deepcopy(graph())
    assert importer in imports.modules, "it has another name now"
    imports.add_import(importer=importer, imported=imported)
    assert broken(imports) == {contract} | ALSO_BROKEN.get(contract, set())
