"""A broker for tests of what is done with brokers: it does nothing but note when it is started and stopped."""

from dataclasses import dataclass


@dataclass
class IdleBroker:
    name: str
    events: list[str]
    is_running: bool = False
    processes: tuple[int, ...] = ()
    """None but its own if empty."""

    @property
    def bootstrap(self) -> str:
        return self.name

    @property
    def process_ids(self) -> tuple[int, ...]:
        return self.processes or (id(self),)

    def format(self) -> None: ...

    def launch(self) -> None: ...

    def start(self) -> None:
        self.events.append(f"start {self.name}")

    def stop(self) -> None:
        self.events.append(f"stop {self.name}")

    def kill(self) -> None: ...
