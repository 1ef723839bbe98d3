"""Who comes next, of whom there are many."""

from lamina.broker.network.turns_by_address import TurnsByAddress


def test_one_of_each_address_in_turn() -> None:
    turns: TurnsByAddress[str] = TurnsByAddress()
    assert not turns
    for one in ("a1", "a2", "a3", "b1", "b2", "c1"):
        turns.add(one[0], one)
    turns.discard("b", "b1")
    turns.discard("d", "d1")
    taken = []
    while turns:
        taken.append(turns.take())
    assert taken == ["a1", "b2", "c1", "a2", "a3"]
