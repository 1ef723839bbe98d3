"""The throttle keeps the average of each stretch at its limit (fact 97)."""

from lamina.cleaning.throttle import Throttle


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_fact_97_it_sleeps_just_enough_and_not_before_300_ms() -> None:
    clock = Clock()
    throttle = Throttle(1000, clock=clock, sleep=clock.sleep)
    throttle(5000)
    assert clock.slept == []
    clock.now += 0.5
    throttle(1000)
    assert clock.slept == [5.5]
    assert throttle.slept_seconds == 5.5


def test_fact_97_each_stretch_is_judged_by_itself() -> None:
    clock = Clock()
    throttle = Throttle(1000, clock=clock, sleep=clock.sleep)
    clock.now += 10
    throttle(1000)
    assert clock.slept == []
    clock.now += 0.5
    throttle(1000)
    assert clock.slept == [0.5]
