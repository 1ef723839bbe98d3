"""The seeds of the corpus can be made again at any time."""

from fuzz.seeding import all_seeds
from fuzz.targets import TARGETS


def test_every_target_has_seeds_of_different_names() -> None:
    made = [(target, [name for name, _ in seeds]) for target, seeds in all_seeds()]
    assert sorted(target for target, _ in made) == sorted(TARGETS)
    assert all(0 < len(names) == len(set(names)) for _, names in made)
