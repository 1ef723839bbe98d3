"""Check histories that were kept: ``python -m tests.history FILE...``. Exits with 1 if anything is wrong."""

import sys
from pathlib import Path

from tests.history.anomalies import summary
from tests.history.checker import check
from tests.history.written import read_history


def main(paths: list[str]) -> int:
    are_right = True
    for path in paths:
        history = read_history(Path(path))
        anomalies = check(history)
        are_right &= not anomalies
        print(f"{path}: {len(history.sends)} sends, {len(history.moves)} reads, {len(anomalies)} anomalies")
        if anomalies:
            print(summary(anomalies))
    return int(not are_right)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
