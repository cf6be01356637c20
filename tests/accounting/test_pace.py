"""How long a budget lasts: as long as it would if the same were charged again and again."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting import Filter, Gaussian, Loss, Pure
from discreet.accounting.pace import LONGEST, SHORTEST, YEAR, pace
from discreet.accounting.room import part_used

TODAY = date(2026, 11, 23)
WHOLE = Filter(10, 0)


def charged(account: Filter, losses: list[tuple[int, Loss]]) -> tuple[Filter, list[tuple[date, Loss]]]:
    """An account after these, each so many days ago."""
    for _, loss in losses:
        account = account.after(loss)
    return account, [(TODAY - timedelta(days), loss) for days, loss in losses]


def test_a_steady_pace_ends_when_what_is_left_is_spent() -> None:
    found = pace(*charged(WHOLE, [(day, Pure(Fraction(1, 10))) for day in range(20)]), TODAY)
    assert found.days == 20
    assert found.until == TODAY + timedelta(80)  # a tenth a day of the 8 that are left
    assert found.words == "as in the last 20 days, until about 2027-02-11"


def test_a_first_day_is_not_taken_for_every_day() -> None:
    found = pace(*charged(WHOLE, [(0, Pure(1))]), TODAY)
    assert found.days == SHORTEST
    assert found.until == TODAY + timedelta(63)


def test_what_is_long_ago_counts_no_more() -> None:
    account, charges = charged(WHOLE, [(LONGEST, Pure(5))])
    assert pace(account, charges, TODAY).words == "nothing was charged in the last 28 days"
    account, charges = charged(WHOLE, [(200, Pure(5)), (LONGEST - 1, Pure(1))])
    assert pace(account, charges, TODAY).until == TODAY + timedelta(112)


def test_what_lasts_longer_than_a_year_has_no_day() -> None:
    found = pace(*charged(WHOLE, [(27, Pure(Fraction(1, 100)))]), TODAY)
    assert found.until is None
    assert found.words == "as in the last 28 days, no end within a year"


def test_what_is_kept_is_not_left() -> None:
    account, charges = charged(WHOLE, [(day, Pure(Fraction(1, 10))) for day in range(20)])
    assert pace(account, charges, TODAY, kept=Pure(4)).until == TODAY + timedelta(40)
    assert pace(account, charges, TODAY, kept=Pure(8)).words == "nothing is left"


@given(
    losses=st.lists(
        st.tuples(
            st.integers(0, 60),
            st.one_of(
                st.fractions(Fraction(1, 1000), 2).map(Pure),
                st.floats(0.001, 1).map(lambda mu: Gaussian(Fraction(mu))),
            ),
        ),
        max_size=12,
    ),
    ahead=st.booleans(),
)
def test_whatever_was_charged_a_day_that_is_said_lies_within_a_year(
    losses: list[tuple[int, Loss]], ahead: bool
) -> None:
    if ahead:  # the clock was set back since
        losses = [(-days, loss) for days, loss in losses]
    account, charges = charged(Filter(3, "1e-6", "1e-7"), losses)
    found = pace(account, charges, TODAY)
    assert SHORTEST <= found.days <= LONGEST
    assert found.until is None or TODAY <= found.until <= TODAY + timedelta(YEAR)
    if part_used(account) == 1:
        assert found.until == TODAY


@pytest.mark.parametrize("day", [TODAY, TODAY - timedelta(3)])
def test_plain_values(day: date) -> None:
    plain = pace(WHOLE.after(Pure(1)), [(day, Pure(1))], TODAY).to_dict()
    assert plain == {"days": 7, "until": "2027-01-25", "words": "as in the last 7 days, until about 2027-01-25"}
