"""Sessions end: idle, old, too many, or with what they were begun with."""

from __future__ import annotations

from discreet.console.sessions import IDLE_SECONDS, ISSUED_SECONDS, LONGEST_SECONDS, MOST, MOST_OF_ONE, Sessions
from discreet.service.accounts import Account
from discreet.service.roles import Role

ANA = Account("ana", Role.ANALYST)


def test_a_session_ends_idle_and_old() -> None:
    clock = [0.0]
    sessions = Sessions(lambda: clock[0])
    cookie = sessions.begin(ANA, b"token")
    for _ in range(int(LONGEST_SECONDS / (IDLE_SECONDS - 1))):
        clock[0] += IDLE_SECONDS - 1
        assert sessions.find(cookie) is not None
    clock[0] = LONGEST_SECONDS
    assert sessions.find(cookie) is None
    idle = sessions.begin(ANA, b"token")
    clock[0] += IDLE_SECONDS
    assert sessions.find(idle) is None
    issued = sessions.begin(ANA, None)
    for _ in range(3):
        clock[0] += ISSUED_SECONDS / 3
        found = sessions.find(issued)
    assert found is None
    assert not len(sessions)


def test_of_one_account_and_of_all_there_are_so_many() -> None:
    clock = [0.0]
    sessions = Sessions(lambda: clock[0])
    cookies = []
    for _ in range(MOST_OF_ONE + 1):
        clock[0] += 1
        cookies.append(sessions.begin(ANA, b"token"))
    assert [sessions.find(one) is not None for one in cookies] == [False] + [True] * MOST_OF_ONE
    for place in range(MOST):
        sessions.begin(Account(f"a{place}", Role.ANALYST), b"token")
    assert len(sessions) == MOST
    assert len({*cookies}) == len(cookies)
    assert sessions.find("x" * 1_000) is None
    assert sessions.find("") is None
