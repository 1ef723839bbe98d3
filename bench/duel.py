"""Two brokers through the same trials, in turns: best of three each, the one idle while the other is measured."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.subjects import Subject
from bench.trials import Figure, Trial


@dataclass(frozen=True, slots=True)
class Result:
    trial: str
    figure: Figure
    kafka_rounds: tuple[float, ...]
    lamina_rounds: tuple[float, ...]

    @property
    def kafka(self) -> float:
        return self.figure.best(self.kafka_rounds)

    @property
    def lamina(self) -> float:
        return self.figure.best(self.lamina_rounds)

    @property
    def ratio(self) -> float:
        return self.lamina / self.kafka

    @property
    def measured(self) -> float:
        """What the bar is for."""
        return self.lamina if self.figure.is_of_lamina else self.ratio

    @property
    def is_met(self) -> bool:
        return self.measured >= self.figure.bar if self.figure.sign == "≥" else self.measured <= self.figure.bar

    @property
    def note(self) -> str:
        """By how much the bar is missed."""
        if self.is_met:
            return ""
        off_percent = abs(self.measured / self.figure.bar - 1) * 100
        return f"{off_percent:.0f} % {'short of' if self.figure.sign == '≥' else 'above'} the bar"


def measure(trials: Sequence[Trial], kafka: Subject, lamina: Subject, tell: Callable[[str], None]) -> list[Result]:
    results: list[Result] = []
    both_run = False
    for trial in trials:
        if not trial.needs_stopped and not both_run:
            for subject in (kafka, lamina):
                subject.start()
            both_run = True
        tell(trial.name)
        results += measure_one(trial, kafka, lamina)
    return results


def measure_one(trial: Trial, kafka: Subject, lamina: Subject) -> list[Result]:
    of_kafka: list[tuple[float, ...]] = []
    of_lamina: list[tuple[float, ...]] = []
    for _ in range(trial.rounds):
        of_kafka.append(trial.run(kafka, new_topic(trial)))
        of_lamina.append(trial.run(lamina, new_topic(trial)))
    return [
        Result(trial.name, figure, kafkas, laminas)
        for figure, kafkas, laminas in zip(
            trial.figures, zip(*of_kafka, strict=True), zip(*of_lamina, strict=True), strict=True
        )
    ]


def new_topic(trial: Trial) -> str:
    return f"{trial.name}-{uuid.uuid4().hex[:8]}"
