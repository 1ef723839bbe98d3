"""Take blocks of producer ids, each in a process of its own that is killed as soon as it has one."""

import os
import signal
import sys

from lamina.store.producer_ids import ProducerIds
from lamina.store.sqlite import SqliteStore


def take_block_and_die(path: str) -> None:
    block = ProducerIds(SqliteStore(path)).next_block()
    os.write(sys.stdout.fileno(), f"{block.start} {block.stop}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    for _ in range(int(sys.argv[2])):
        child = os.fork()
        if child == 0:
            take_block_and_die(sys.argv[1])
        os.waitpid(child, 0)
