"""``lamina features``, against a broker of its own: levels hold for everybody."""

from collections.abc import Callable

from lamina.image.features import LAMINA_VERSION
from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina

Start = Callable[..., BrokerProcess]
NAME = "transaction.version"


def test_features_are_described_lowered_and_raised(lamina: Lamina, own_broker: Start) -> None:
    where = ("--bootstrap-server", own_broker().address)

    def described() -> tuple[int, int]:
        others, found = lamina("features", "describe", "--json", *where).objects
        assert others["feature"] == LAMINA_VERSION
        bounds = {"type": "feature", "feature": NAME, "min_level": 0, "max_level": 2}
        assert found == bounds | {"level": found["level"], "epoch": found["epoch"]}
        return found["level"], found["epoch"]

    level, epoch = described()
    assert level == 2
    lines = lamina("features", "describe", *where).out.splitlines()
    assert lines[0].split() == ["feature", "min", "level", "max", "level", "level", "epoch"]
    assert lines[2].split() == [NAME, "0", "2", "2", str(epoch)]
    outcome = lamina("features", "downgrade", f"{NAME}=1", "--dry-run", *where)
    assert (outcome.status, outcome.out) == (0, f"{NAME} could be set to 1\n")
    assert described() == (2, epoch)
    outcome = lamina("features", "downgrade", f"{NAME}=1", *where)
    assert (outcome.status, outcome.out) == (0, f"{NAME} = 1\n")
    assert described() == (1, epoch + 1)
    (told,) = lamina("features", "upgrade", f"{NAME}=2", "--json", *where).objects
    assert told == {"type": "feature_update", "feature": NAME, "level": 2, "dry_run": False}
    assert described() == (2, epoch + 2)


def test_what_cannot_be_changed_is_one_sentence(lamina: Lamina, broker: BrokerProcess) -> None:
    where = ("--bootstrap-server", broker.address)
    for arguments, words in (
        (("upgrade", f"{NAME}=3"), "supported are levels 0 to 2"),
        (("upgrade", f"{NAME}=1"), "only a downgrade may lower it"),
        (("downgrade", "no.such.feature=1"), "this cluster has no such feature"),
        (("downgrade", "no.such.feature=1", "--unsafe", "--yes"), "this cluster has no such feature"),
    ):
        outcome = lamina("features", *arguments, *where)
        assert (outcome.status, outcome.err.count("\n")) == (1, 1), arguments
        assert words in outcome.err
        assert "lamina features describe" in outcome.err


def test_bad_input_never_reaches_the_broker(lamina: Lamina) -> None:
    for levels in (NAME, f"{NAME}=", f"{NAME}=-1", f"{NAME}=two", f"{NAME}=32768", "=1"):
        assert lamina("features", "upgrade", levels, "--bootstrap-server", "127.0.0.1:1").status == 2, levels
    unsafe = ("features", "downgrade", f"{NAME}=0", "--unsafe", "--bootstrap-server", "127.0.0.1:1")
    assert lamina(*unsafe).status == 2, "nobody is here to be asked"
