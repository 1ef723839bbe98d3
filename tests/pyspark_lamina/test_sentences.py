"""What Spark shows of an error that is meant for a person."""

import os

import pytest

from lamina.arrow.errors import ReadError
from lamina.errors import NetworkError
from pyspark_lamina.old_spark import NoStreams
from pyspark_lamina.sentences import in_one_sentence

HIDES_STACK = "SPARK_HIDE_TRACEBACK"


@pytest.fixture(autouse=True)
def _shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HIDES_STACK, "")


@pytest.mark.parametrize("error", [ReadError("a sentence"), NetworkError("a sentence")])
def test_a_sentence_comes_without_a_stack(error: Exception) -> None:
    with pytest.raises(type(error), match=r"^a sentence$"), in_one_sentence():
        raise error
    assert os.environ[HIDES_STACK] == "1"


def test_a_mistake_of_ours_comes_with_its_stack() -> None:
    with pytest.raises(ZeroDivisionError), in_one_sentence():
        raise ZeroDivisionError
    assert os.environ[HIDES_STACK] == ""


def test_a_spark_without_limits_of_streams_is_told_with_the_first_question() -> None:
    reader = NoStreams()
    for ask in (reader.initialOffset, reader.latestOffset):
        with pytest.raises(ReadError, match=r"^streams of topics need PySpark 4\.2 or newer, and this is \d"):
            ask()
