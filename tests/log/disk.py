"""A disk that remembers what was done to it, and shows what a power cut could have left.

``RecordingDisk`` performs every operation for real and writes it down; ``crash`` makes one possible state of the
disk after any prefix of them; ``Replay`` does so for a disk that is nowhere but in memory, too. What was not fsynced
may be there, be lost or be torn, file by file; names that were not synced may be there or be lost, directory by
directory. An fsync of a file does not save its name. Must not know what is inside a file.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from lamina.log.files import Bytes, Disk, File, parent

Tree = dict[str, "bytes | Tree"]
"""What is in a directory."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation that changed the disk. ``node`` is the file or directory that it was done to."""

    kind: str
    node: int = 0
    path: str = ""
    new_path: str = ""
    data: bytes = b""
    position: int = 0


class RecordedFile(File):
    __slots__ = ("disk", "node")

    def __init__(self, disk: "RecordingDisk", file: File, node: int) -> None:
        super().__init__(file.path, file.fd)
        self.disk = disk
        self.node = node

    def pwrite(self, data: Bytes, position: int) -> int:
        written = super().pwrite(data, position)
        self.disk.record(Op("write", self.node, self.path, data=bytes(data[:written]), position=position))
        return written

    def truncate(self, size_bytes: int) -> None:
        super().truncate(size_bytes)
        self.disk.record(Op("truncate", self.node, self.path, position=size_bytes))

    def fsync(self) -> None:
        """Only written down: the power is cut on paper, so that the real disk need not be waited for."""
        self.disk.record(Op("fsync", self.node, self.path))


class RecordedDirectory(RecordedFile):
    def fsync(self) -> None:
        self.disk.record(Op("sync_dir", self.node, self.path))


class RecordingDisk(Disk):
    """Everything below ``root``, which counts as safe as it is found."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self.ops: list[Op] = []
        self._nodes: dict[str, int] = {}
        self._last_node = 0
        self._start = Remembered()
        self._adopt(self.root)

    def _adopt(self, path: str) -> int:
        node = self._number(path)
        if os.path.isdir(path):
            self._start.nodes[path] = node
            self._start.directories[node] = {name: self._adopt(f"{path}/{name}") for name in sorted(os.listdir(path))}
        else:
            with open(path, "rb") as file:
                self._start.files[node] = file.read()
        return node

    def _number(self, path: str) -> int:
        self._last_node += 1
        self._nodes[path] = self._last_node
        return self._last_node

    def record(self, op: Op) -> None:
        self.ops.append(op)

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        is_new = create and not os.path.exists(path)
        file = super().open(path, write=write, create=create)
        if is_new:
            self.record(Op("create", self._number(path), path))
        return RecordedFile(self, file, self._nodes[path])

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        node = self._nodes.pop(old)
        for path in [path for path in self._nodes if path.startswith(old + "/")]:
            self._nodes[new + path.removeprefix(old)] = self._nodes.pop(path)
        self._nodes[new] = node
        self.record(Op("rename", node, old, new))

    def link(self, old: str, new: str) -> None:
        super().link(old, new)
        self._nodes[new] = self._nodes[old]
        self.record(Op("link", self._nodes[old], new))

    def unlink(self, path: str) -> None:
        super().unlink(path)
        if path in self._nodes:
            self.record(Op("unlink", self._nodes.pop(path), path))

    def make_dir(self, path: str) -> None:
        if not os.path.isdir(path):
            self.make_dir(parent(path))
            super().make_dir(path)
            self.record(Op("mkdir", self._number(path), path))

    def remove_tree(self, path: str) -> None:
        super().remove_tree(path)
        if path in self._nodes:
            self.record(Op("unlink", self._nodes.pop(path), path))

    def open_dir(self, path: str) -> File:
        return RecordedDirectory(self, super().open_dir(path), self._nodes[path])

    def sync_dir(self, path: str) -> None:
        self.record(Op("sync_dir", self._nodes[path], path))

    def crash(self, prefix: int, rng: Random, target: str) -> None:
        """Make in ``target`` a state that a power cut after the first ``prefix`` operations could have left."""
        _write(Replay(self._start).run(self.ops[:prefix]).left(rng, self._start.nodes[self.root]), target)


def _write(tree: Tree, target: str) -> None:
    os.makedirs(target, exist_ok=True)
    for name, found in tree.items():
        if isinstance(found, bytes):
            with open(f"{target}/{name}", "wb") as file:
                file.write(found)
        else:
            _write(found, f"{target}/{name}")


@dataclass(slots=True)
class Remembered:
    """A disk with nothing under way."""

    files: dict[int, bytes] = field(default_factory=dict)
    directories: dict[int, dict[str, int]] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    """The directories by path."""


class Replay:
    """The disk as it is for sure, and what is under way, after some operations."""

    def __init__(self, start: Remembered) -> None:
        self.files = dict(start.files)
        self.directories = {node: dict(names) for node, names in start.directories.items()}
        self.pending: dict[int, list[Op]] = {}
        self.nodes = dict(start.nodes)

    def run(self, ops: Iterable[Op]) -> "Replay":
        for op in ops:
            match op.kind:
                case "fsync":
                    self.files[op.node] = _apply_data(self.files.get(op.node, b""), self.pending.pop(op.node, []))
                case "sync_dir":
                    _apply_names(self.directories[op.node], self.pending.pop(op.node, []))
                case "write" | "truncate":
                    self.pending.setdefault(op.node, []).append(op)
                case _:
                    self._change_name(op)
        return self

    def _change_name(self, op: Op) -> None:
        if op.kind == "mkdir":
            self.directories[op.node] = {}
            self.nodes[op.path] = op.node
        elif op.kind == "create":
            self.files[op.node] = b""
        elif op.kind == "rename" and op.node in self.directories:
            self.nodes[op.new_path] = self.nodes.pop(op.path)
        self.pending.setdefault(self.nodes[parent(op.path)], []).append(op)

    def left(self, rng: Random, node: int) -> Tree:
        """What a power cut could leave of a directory."""
        names = self.directories[node]
        _apply_names(names, _surviving_names(self.pending.get(node, []), rng))
        tree: Tree = {}
        for name, child in sorted(names.items()):
            if child in self.directories:
                tree[name] = self.left(rng, child)
            else:
                tree[name] = _torn(self.files[child], self.pending.get(child, []), rng)
        return tree


def _apply_names(names: dict[str, int], ops: Iterable[Op]) -> None:
    """An operation whose name never came to be, because an earlier one was lost, does nothing."""
    for op in ops:
        name = op.path.rpartition("/")[2]
        if op.kind in ("create", "link", "mkdir"):
            names[name] = op.node
        elif names.get(name) == op.node:
            del names[name]
            if op.kind == "rename":
                names[op.new_path.rpartition("/")[2]] = op.node


def _surviving_names(ops: list[Op], rng: Random) -> list[Op]:
    """Mostly the first few, as a journal keeps them; sometimes any."""
    choice = rng.random()
    if choice < 0.15:
        return ops
    if choice < 0.7:
        return ops[: rng.randint(0, len(ops))]
    kept = rng.random()
    return [op for op in ops if rng.random() < kept]


def _apply_data(data: bytes, ops: Iterable[Op]) -> bytes:
    content = bytearray(data)
    for op in ops:
        if op.kind == "truncate":
            _resize(content, op.position)
        elif op.kind == "extend":
            _resize(content, max(len(content), op.position))
        else:
            _resize(content, max(len(content), op.position + len(op.data)))
            content[op.position : op.position + len(op.data)] = op.data
    return bytes(content)


def _resize(content: bytearray, size_bytes: int) -> None:
    if size_bytes < len(content):
        del content[size_bytes:]
    else:
        content += bytes(size_bytes - len(content))


def _torn(data: bytes, ops: list[Op], rng: Random) -> bytes:
    """All, none or the first few of the changes with the last one torn; or each on its own: kept, lost, torn, zeros."""
    if not ops:
        return data
    choice = rng.random()
    if choice < 0.2:
        return _apply_data(data, ops)
    if choice < 0.6:
        kept = rng.randint(0, len(ops) - 1)
        return _apply_data(data, [*ops[:kept], *_damaged(ops[kept], rng)])
    share = rng.random()
    return _apply_data(data, [part for op in ops for part in ([op] if rng.random() < share else _damaged(op, rng))])


def _damaged(op: Op, rng: Random) -> list[Op]:
    """What may be left of one change: nothing, a beginning, or a longer file with zeros in it."""
    if op.kind == "truncate" or rng.random() < 0.3:
        return []
    kept = op.data[: rng.randint(0, len(op.data))] if rng.random() < 0.7 else b""
    left = [Op("write", op.node, data=kept, position=op.position)] if kept else []
    if rng.random() < 0.5:
        left.append(Op("extend", op.node, position=op.position + len(op.data)))
    return left
