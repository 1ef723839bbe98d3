"""Where and how Spark does the work of a broker's data pipeline.

Owns its settings, and the family ``lamina.spark.conf.*`` whose members are Spark's own. Must not know Spark.
"""

import re
from collections.abc import Mapping

from lamina.settings.definition import SettingError, broker_setting
from lamina.settings.kinds import LONG, STRING, Rule, at_least
from lamina.settings.values import BrokerSettings

_MASTER = re.compile(
    r"none|local(\[(\*|[1-9]\d*)(,\s*[1-9]\d*)?\])?|local-cluster\[\d+,\s*\d+,\s*\d+\]|yarn|(spark|k8s)://\S+", re.ASCII
)

LAMINA_SPARK_MASTER = broker_setting(
    "lamina.spark.master",
    STRING,
    "local[*]",
    "Where Spark runs: `local[*]` is a process beside the broker, with as many slots as there are cores; or the master "
    "of a cluster whose executors see the log directories under the same paths; or `none`: then logs are cleaned one "
    "after the other by a plain process, without Java.",
    rule=Rule("local[N], spark://…, yarn, k8s://… or none", lambda value: _MASTER.fullmatch(value) is not None),
    difference="Kafka has no such setting",
)
LAMINA_SPARK_IDLE_STOP_MS = broker_setting(
    "lamina.spark.idle.stop.ms",
    LONG,
    600_000,
    "Spark is started when there is something to clean, and stopped after this long without work.",
    rule=at_least(0),
    difference="Kafka has no such setting",
)

SPARK_CONF_PREFIX = "lamina.spark.conf."
SPARK_CONF_DOC = (
    "`lamina.spark.conf.NAME` gives Spark's own setting `NAME`, such as "
    "`lamina.spark.conf.spark.executor.memory=4g`; read when Spark is started."
)

_TAKEN = {
    "spark.master": "set lamina.spark.master instead",
    "spark.submit.deployMode": "the driver always runs beside its broker",
    "spark.python.daemon.module": "Lamina brings its own",
    "spark.python.worker.module": "Lamina brings its own",
}


def check_spark_conf(name: str) -> bool:
    """Whether a name is one of the family; raises SettingError for one that cannot be given."""
    if not name.startswith(SPARK_CONF_PREFIX):
        return False
    spark_name = name.removeprefix(SPARK_CONF_PREFIX)
    if spark_name in _TAKEN:
        raise SettingError(f"{name}: cannot be given, {_TAKEN[spark_name]}")
    if not spark_name.startswith("spark."):
        raise SettingError(
            f"{name}: what follows {SPARK_CONF_PREFIX} must be a name of Spark's, such as spark.ui.enabled"
        )
    return True


def spark_conf(settings: BrokerSettings) -> Mapping[str, str]:
    """Spark's own settings by their names there, the strongest value of each."""
    found: dict[str, str] = {}
    for _, given in settings.layers:
        for name, text in given.items():
            if name.startswith(SPARK_CONF_PREFIX):
                found.setdefault(name.removeprefix(SPARK_CONF_PREFIX), text)
    return found
