"""``lamina dump`` and ``lamina verify`` over any files: every answer is a table or JSON, and no traceback."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout

from fuzz.choices import Choices
from fuzz.files import scratch, unpack_files
from fuzz.sealing import seal_file
from fuzz.targets import log_directories, partition_logs
from lamina.cli import main
from lamina.cli.outcome import BAD_INPUT, FINE, SOMETHING_WRONG

NAMES = (
    *(name for name in log_directories.NAMES if "/" not in name),
    *(f"orders-0/{name}" for name in partition_logs.NAMES),
    "orders-0/partition.metadata",
)


def one(data: bytes) -> None:
    choices = Choices(data)
    is_sealed, is_json, with_records = choices.flag(), choices.flag(), choices.flag()
    files = unpack_files(NAMES, choices)
    if is_sealed:
        files = {name: seal_file(name, content) for name, content in files.items()}
    with scratch(files) as root:
        as_json = ["--json"] if is_json else []
        records = ["--records"] if with_records else []
        paths = [str(root / name) for name in files]
        if paths:
            out, status = _run(["dump", *as_json, *records, *paths])
            assert status in (FINE, BAD_INPUT)
            _check(out, is_json)
        out, status = _run(["verify", *as_json, "--dir", str(root)])
        assert status in (FINE, SOMETHING_WRONG, BAD_INPUT)
        _check(out, is_json)
        assert {name: (root / name).read_bytes() for name in files} == files


def _run(args: list[str]) -> tuple[str, int]:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2))
    try:
        with redirect_stdout(out), redirect_stderr(err):
            # With --debug whatever is unexpected comes out here as it is.
            main(["--debug", *args])
    except SystemExit as end:
        assert isinstance(end.code, int)
        out.flush()
        return out.buffer.getvalue().decode(), end.code


def _check(out: str, is_json: bool) -> None:
    if is_json:
        for line in out.split("\n")[:-1]:
            assert isinstance(json.loads(line), dict)
