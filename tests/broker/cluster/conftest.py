"""What every test of members in one process is given."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker.cluster.members import Members

NewMembers = Callable[..., Members]


@pytest.fixture
def new_members(tmp_path: Path) -> Iterator[NewMembers]:
    """Makes a cluster of which nothing is up yet; none of it is left."""
    made: list[Members] = []

    def make(**settings: str) -> Members:
        made.append(Members(tmp_path, **settings))
        return made[-1]

    yield make
    for members in made:
        members.close()
