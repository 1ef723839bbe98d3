"""Whether the broker serves clients yet, and how far its start is. Must not know what takes the time."""


class Readiness:
    def __init__(self) -> None:
        self.logs_opened = 0
        self.logs = 0
        """How many are to be opened; 0 while that is not known."""
        self.is_for_brokers_alone = False
        """Whether clients are sent away: this broker starts, and other brokers need it already."""
        self.is_ready = False
        self.is_stopping = False

    def opened(self, done: int, total: int) -> None:
        self.logs_opened, self.logs = done, total

    @property
    def percent(self) -> int:
        return 100 * self.logs_opened // self.logs if self.logs else 0
