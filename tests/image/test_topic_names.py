import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import InvalidRequest, InvalidTopic, TopicAlreadyExists
from lamina.image.changes import create_topic, mark_deleted
from lamina.image.image import Image
from lamina.image.topic_names import check_new_topic_name, check_topic_name
from tests.image.steps import CLUSTER_ID, topic_id

EMPTY = Image(CLUSTER_ID)


@pytest.mark.parametrize("name", ["a", "...", "A-Z_0.9", "-", "x" * 249])
def test_legal_names_pass(name: str) -> None:
    check_new_topic_name(EMPTY, name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ä", "a\n", "٣"])
def test_illegal_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidTopic):
        check_topic_name(name)


def test_a_very_long_name_is_not_repeated_in_the_sentence() -> None:
    with pytest.raises(InvalidTopic, match=r"^the topic name x{20}… has 30000 characters; 249 is the limit$"):
        check_topic_name("x" * 30_000)


def test_the_name_of_kafkas_own_metadata_log_is_not_given() -> None:
    with pytest.raises(InvalidRequest, match="controller"):
        check_new_topic_name(EMPTY, "__cluster_metadata")


def test_a_name_is_taken_until_the_topic_is_removed() -> None:
    image = create_topic(EMPTY, "orders", topic_id(1), [(0,)])
    with pytest.raises(TopicAlreadyExists, match="already exists"):
        check_new_topic_name(image, "orders")
    with pytest.raises(TopicAlreadyExists, match="is still being deleted"):
        check_new_topic_name(mark_deleted(image, "orders"), "orders")


@given(st.text("a._", min_size=3, max_size=5), st.text("a._", min_size=3, max_size=5))
def test_names_collide_just_when_they_differ_in_dots_and_underscores(old: str, new: str) -> None:
    image = create_topic(EMPTY, old, topic_id(1), [(0,)])
    if old == new:
        with pytest.raises(TopicAlreadyExists):
            check_new_topic_name(image, new)
    elif old.replace(".", "_") == new.replace(".", "_"):
        with pytest.raises(InvalidTopic, match="collides"):
            check_new_topic_name(image, new)
    else:
        check_new_topic_name(image, new)
