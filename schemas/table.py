"""kio's schemas, all versions of a message in one definition, in the notation of `lamina.wire.schemas`.

Owns the merging of versions and the writing of the notation. That nothing is lost or invented by it is shown by
`tests/wire/test_schemas.py`, which compares what `lamina.wire` reads out of the table with kio, field by field.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from schemas.apis import API_KEYS, BEFORE_KAFKA_4, OURS
from schemas.kio_messages import NO_DEFAULT, KioField, fields_of, request_versions, response_versions

_HEAD = '''"""Every message, all its versions in one definition. Made from kio by `make schemas`; not to be edited.

`lamina.wire.schemas` says how it is read.
"""

MESSAGES = {
'''

_WORDS = {None: "null", True: "true", False: "false", "": '""', (): "[]"}


def source() -> str:
    """The text of `lamina.wire.message_table`."""
    texts = {api_key: "\n".join([*_api_lines(api_key), ""]) for api_key in API_KEYS} | BEFORE_KAFKA_4 | OURS
    return _HEAD + "".join(f'    {api_key}: """\\\n{texts[api_key]}""",\n' for api_key in sorted(texts)) + "}\n"


def _api_lines(api_key: int) -> Iterator[str]:
    yield from _Message(request_versions(api_key)).lines()
    yield from _Message(response_versions(api_key)).lines()


class _Message:
    """All versions of one message."""

    def __init__(self, by_version: Mapping[int, type[Any]]) -> None:
        self._versions = list(by_version)
        self._name = by_version[self._versions[-1]].__name__
        self._structures: dict[str, dict[int, list[KioField]]] = {}
        """Name of a structure → version → fields."""
        for version, structure in by_version.items():
            self._collect(version, structure)
        self._written: set[str] = set()

    def _collect(self, version: int, structure: type[Any]) -> None:
        fields = fields_of(structure)
        self._structures.setdefault(structure.__name__, {})[version] = fields
        for field in fields:
            if field.structure is not None:
                self._collect(version, field.structure)

    def lines(self) -> Iterator[str]:
        yield f"{self._name} {self._versions[0]}-{self._versions[-1]}"
        yield from self._field_lines(self._name, indent=" ")

    def _field_lines(self, structure: str, indent: str) -> Iterator[str]:
        """The fields of a structure, at its first mention; later ones are its name alone."""
        if structure in self._written:
            return
        self._written.add(structure)
        by_version = self._structures[structure]
        for name in _merged([[field.name for field in fields] for fields in by_version.values()]):
            having = {
                version: field for version, fields in by_version.items() for field in fields if field.name == name
            }
            for run in _runs(having):
                yield indent + self._line(run, having, exists_in=list(by_version))
            newest = having[max(having)]
            if newest.structure is not None:
                yield from self._field_lines(newest.wire_type, indent + " ")

    def _line(self, run: Sequence[int], having: Mapping[int, KioField], exists_in: Sequence[int]) -> str:
        field = having[run[-1]]
        words = [field.name, "[]" * field.is_array + field.wire_type]
        if list(run) != list(exists_in):
            words.append(self._range(run))
        nullable = [version for version in run if having[version].nullable]
        if nullable and (field.is_array or field.wire_type != "uuid"):
            words.append("null" if nullable == list(run) else f"null={self._range(nullable)}")
        if field.tag is not None:
            words.append(f"tag={field.tag}")
        if field.default is not NO_DEFAULT:
            words.append(f"default={_default_word(field.default)}")
        return " ".join(words)

    def _range(self, versions: Sequence[int]) -> str:
        first, last = versions[0], versions[-1]
        if list(versions) != list(range(first, last + 1)):
            raise ValueError(f"versions with a gap: {versions}")
        return f"{first}+" if last == self._versions[-1] else f"{first}-{last}"


def _merged(names_by_version: Sequence[Sequence[str]]) -> list[str]:
    """All names, each version's in its own order."""
    merged: list[str] = []
    for names in reversed(names_by_version):
        at = 0
        for name in names:
            if name in merged:
                at = merged.index(name) + 1
            else:
                merged.insert(at, name)
                at += 1
    return merged


def _runs(having: Mapping[int, KioField]) -> Iterator[list[int]]:
    """Versions in a row in which a field is the same but for whether it may be null."""
    versions = sorted(having)
    run = versions[:1]
    for before, version in pairwise(versions):
        if version != before + 1 or _essence(having[version]) != _essence(having[before]):
            yield run
            run = []
        run.append(version)
    yield run


def _essence(field: KioField) -> KioField:
    return replace(field, nullable=False, structure=None)


def _default_word(value: Any) -> str:
    if value == {}:
        return "{}"
    return _WORDS[value] if value is None or isinstance(value, (bool, str, tuple)) else str(value)
