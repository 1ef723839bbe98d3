import sys

from lamina.broker.threads import giving_way


def test_who_gives_way_last_restores_what_was_usual() -> None:
    usual = sys.getswitchinterval()
    first, second = giving_way(), giving_way()
    first.__enter__()
    short = sys.getswitchinterval()
    assert short < usual
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getswitchinterval() == short
    second.__exit__(None, None, None)
    assert sys.getswitchinterval() == usual
