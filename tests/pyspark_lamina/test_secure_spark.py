"""``format("lamina")`` with TLS and a login: it reads and writes, and Spark shows nobody the password."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tests.arrow.secure_broker import PASSWORD, SecureBroker, Start
from tests.arrow.topics import create
from tests.pyspark_lamina.session import spark_session

WRONG = "wrong one; secret"


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_password_is_in_no_plan_no_event_and_no_error(own_broker: Start, tmp_path: Path) -> None:
    """S86; Spark's events are what its UI and its history server show."""
    secure = SecureBroker(own_broker, tmp_path)
    create(secure.address("PLAINTEXT"), "in-secret", 1)
    events = tmp_path / "events"
    events.mkdir()
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri(), "spark.eventLog.compress": "false"}
    given = {f"kafka.{name}": value for name, value in secure.properties("SASL_SSL").items()}
    given["kafka.bootstrap.servers"] = secure.address("SASL_SSL")
    with spark_session(tmp_path / "spark", more=log) as spark:
        rows = spark.range(10).selectExpr("cast(cast(id as string) as binary) as value")
        rows.write.format("lamina").mode("append").options(**given, topic="in-secret").save()
        read = spark.read.format("lamina").options(**given, subscribe="in-secret").load()
        assert read.count() == 10
        plans = plan_of(read)
        wrong = dict(given)
        wrong["kafka.sasl.jaas.config"] = wrong["kafka.sasl.jaas.config"].replace(PASSWORD, WRONG)
        with pytest.raises(PySparkException, match="does not accept this login") as refused:
            spark.read.format("lamina").options(**wrong, subscribe="in-secret").load().count()
        refusal = str(refused.value)
    told = "".join([plans, refusal, *(path.read_text() for path in events.rglob("events*") if path.is_file())])
    assert "in-secret" in told or "lamina" in told
    assert PASSWORD not in told
    assert WRONG not in told


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())
