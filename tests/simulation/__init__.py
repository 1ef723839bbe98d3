"""Brokers and clients in one process, from one seed: what happens, and when, is drawn; the code is the broker's own.

It can be so because `broker` takes its loop, clocks and executor from outside, `log` its disk and `peer` its connector,
and because nothing else asks the system for what differs from run to run.

- `loop`: virtual time and the processes on it; `executor`: the threads of a process; `randomness`: ids.
- `links`, `network`, `served`: connections that carry real frames between machines.
- `memory_disk`, `disks`, `memory_store`, `clocks`: what a machine has. `node`: a machine and its broker.
- `clients`, `transactional_clients`: what is asked of brokers; `reading`: what a reader makes of a response.
- `judge`: what clients were promised and saw; `watch`: what holds inside brokers. `faults`: what goes wrong.
- `world`: all of it together; `story`: what happened. ``python -m tests.simulation --seed N`` tells one.
"""
