"""Which engine a broker has, by its settings. Must not know what an engine does."""

from lamina.broker.cleaner.engine import Engine
from lamina.broker.cleaner.process_engine import ProcessEngine
from lamina.broker.cleaner.spark_engine import SparkEngine
from lamina.settings.broker import LAMINA_DATA_DIR
from lamina.settings.spark import LAMINA_SPARK_IDLE_STOP_MS, LAMINA_SPARK_MASTER, spark_conf
from lamina.settings.values import BrokerSettings

NO_SPARK = "none"


def engine_for(settings: BrokerSettings) -> Engine:
    master = settings[LAMINA_SPARK_MASTER]
    if master == NO_SPARK:
        return ProcessEngine()
    return SparkEngine(
        f"{settings[LAMINA_DATA_DIR]}/spark", master, spark_conf(settings), settings[LAMINA_SPARK_IDLE_STOP_MS]
    )
