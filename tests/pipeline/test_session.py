"""What Spark is told: no open doors, scratch inside the engine's directory, the operator's word over ours."""

import os
from pathlib import Path

import pytest

from lamina.pipeline.session import prepare_directory, spark_settings, with_retries


def test_a_local_spark_listens_on_loopback_alone_and_asks_for_a_secret() -> None:
    told = spark_settings("local[*]", {}, "/data/spark")
    assert told["spark.master"] == "local[*,2]"
    assert told["spark.driver.bindAddress"] == told["spark.driver.host"] == "127.0.0.1"
    assert told["spark.authenticate"] == "true"
    assert told["spark.ui.enabled"] == "false"
    assert told["spark.python.unix.domain.socket.dir"] == "/data/spark/scratch/tmp"


def test_what_spark_writes_for_itself_lies_in_the_engines_directory() -> None:
    told = spark_settings("local[2]", {}, "/data/spark")
    assert told["spark.local.dir"].startswith("/data/spark/scratch/")
    assert told["spark.sql.warehouse.dir"].startswith("/data/spark/scratch/")


def test_where_the_operator_would_have_the_scratch_the_engine_has_a_place_of_its_own() -> None:
    told = spark_settings("local[2]", {"spark.local.dir": "/fast, /large"}, "/data/spark")["spark.local.dir"]
    other = spark_settings("local[2]", {"spark.local.dir": "/fast"}, "/other/spark")["spark.local.dir"]
    fast, large = told.split(",")
    assert fast.startswith("/fast/lamina-")
    assert large.startswith("/large/lamina-")
    assert other != fast


def test_sockets_are_no_files_where_their_names_would_be_too_long() -> None:
    assert "spark.python.unix.domain.socket.enabled" not in spark_settings("local[2]", {}, "/" + "d" * 60)


def test_a_cluster_elsewhere_decides_on_which_address_its_driver_is_reached() -> None:
    told = spark_settings("spark://master.example:7077", {}, "/data/spark")
    assert "spark.driver.bindAddress" not in told
    assert "spark.authenticate" not in told
    assert spark_settings("yarn", {}, "/data/spark")["spark.authenticate"] == "true"
    assert spark_settings("spark://127.0.0.1:7077", {}, "/data/spark")["spark.driver.host"] == "127.0.0.1"


def test_what_the_operator_says_comes_first_but_for_what_makes_the_engine_work() -> None:
    given = {"spark.ui.enabled": "true", "spark.master": "local[7]", "spark.executor.memory": "4g"}
    told = spark_settings("local[2]", given, "/data/spark")
    assert told["spark.ui.enabled"] == "true"
    assert told["spark.executor.memory"] == "4g"
    assert told["spark.master"] == "local[2,2]"
    assert told["spark.python.daemon.module"] == "lamina.pipeline.daemon"


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local", "local[1,2]"), ("local[3]", "local[3,2]"), ("local[3,7]", "local[3,7]"), ("yarn", "yarn")],
)
def test_a_local_task_is_tried_twice_unless_the_master_says_otherwise(master: str, expected: str) -> None:
    assert with_retries(master) == expected


def test_scratch_of_an_earlier_engine_is_emptied_and_closed_to_others(tmp_path: Path) -> None:
    home = tmp_path / "spark"
    old = home / "scratch" / "local" / "blockmgr"
    old.mkdir(parents=True)
    (home / "classes-1.jsa").write_bytes(b"kept")
    prepare_directory(str(home))
    assert not old.exists()
    assert (home / "classes-1.jsa").exists()
    assert os.stat(home / "scratch" / "tmp").st_mode & 0o077 == 0


def test_scratch_that_is_a_link_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "spark" / "scratch").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="not a directory of the engine's own"):
        prepare_directory(str(tmp_path / "spark"))
    assert (tmp_path / "elsewhere").exists()
