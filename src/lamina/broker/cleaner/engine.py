"""The engine that carries out passes: what the cleaner asks of it, and which one a broker has by its settings.

An engine takes plans as they come, several at a time, and answers each as soon as it is done; it never touches a name
in a partition's directory. Must not know how a plan came about, nor what becomes of the answer.
"""

import os
from typing import Protocol

from lamina.broker.cleaner.engine_child import Progress
from lamina.broker.cleaner.process_engine import ProcessEngine
from lamina.broker.cleaner.spark_engine import SparkEngine
from lamina.cleaning.contract import Plan
from lamina.cleaning.engine_messages import Answer
from lamina.settings.spark import LAMINA_SPARK_IDLE_STOP_MS, LAMINA_SPARK_MASTER, spark_conf
from lamina.settings.values import BrokerSettings
from lamina.storage import storage_paths

NO_SPARK = "none"


class Engine(Protocol):
    def missing(self) -> str | None:
        """Why no pass can be made here, in half a sentence; ``None`` when nothing is missing. Quick."""

    def waits_for(self) -> str | None:
        """What keeps plans that were given to it from being begun, as a sentence; ``None`` for nothing."""

    async def clean(self, plan: Plan, progress: Progress) -> Answer:
        """Have a plan carried out. What goes wrong is an answer."""

    def cancel(self, plan_id: str) -> None:
        """The plan's result is no longer wanted: it is answered at once, and the engine stops working on it."""

    async def stop(self) -> None:
        """End now, whatever is under way."""


def engine_for(settings: BrokerSettings) -> Engine:
    master = settings[LAMINA_SPARK_MASTER]
    if master == NO_SPARK:
        return ProcessEngine()
    data_directory, _ = storage_paths(settings)
    return SparkEngine(
        os.path.join(data_directory, "spark"), master, spark_conf(settings), settings[LAMINA_SPARK_IDLE_STOP_MS]
    )
