"""Spark's settings, and the family whose members are Spark's own."""

import pytest

from lamina.settings.definition import SettingError
from lamina.settings.resolve import resolve_broker
from lamina.settings.spark import LAMINA_SPARK_MASTER, spark_conf


def test_what_follows_the_prefix_is_given_to_spark_and_the_strongest_value_wins() -> None:
    settings = resolve_broker(
        file={"lamina.spark.conf.spark.executor.memory": "1g", "lamina.spark.conf.spark.ui.enabled": "true"},
        sets={"lamina.spark.conf.spark.executor.memory": "2g"},
    )
    assert spark_conf(settings) == {"spark.executor.memory": "2g", "spark.ui.enabled": "true"}
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lamina.spark.conf.spark.master", "set lamina.spark.master instead"),
        ("lamina.spark.conf.spark.submit.deployMode", "beside its broker"),
        ("lamina.spark.conf.executor.memory", "must be a name of Spark's"),
        ("lamina.spark.conf.", "must be a name of Spark's"),
    ],
)
def test_a_name_that_cannot_be_given_to_spark_stops_the_start(name: str, reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        resolve_broker(file={name: "x"})


def test_sparks_settings_cannot_change_while_the_broker_runs() -> None:
    with pytest.raises(SettingError, match="cannot change while the broker runs"):
        resolve_broker(dynamic_broker={"lamina.spark.conf.spark.ui.enabled": "true"})


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,4]", "spark://a:7077", "yarn", "none"])
def test_masters_that_spark_knows_are_taken(master: str) -> None:
    assert resolve_broker(file={"lamina.spark.master": master})[LAMINA_SPARK_MASTER] == master


@pytest.mark.parametrize("master", ["locl", "local[0]", "local[", "http://a", ""])
def test_other_masters_stop_the_start(master: str) -> None:
    with pytest.raises(SettingError, match=r"lamina\.spark\.master"):
        resolve_broker(file={"lamina.spark.master": master})
