"""The trusted package: closed, in rings, small, and listed as it is."""

from __future__ import annotations

import re

import pytest

from trusted_list import (
    BEGIN,
    END,
    README,
    RINGS,
    SOURCE,
    closure,
    code_lines,
    imports,
    inside,
    leans_on,
    listed,
    ring,
    short,
)

ERRORS = frozenset({"discreet.errors"})
"""What every ring may raise: the closed list of errors, whose texts are no promise."""


def test_ring_a_and_the_ledger_rest_on_nothing_outside_but_the_errors() -> None:
    assert leans_on("ring_a") == ERRORS
    assert leans_on("ledger") == ERRORS


def test_the_other_rings_rest_on_the_dialect_beside() -> None:
    for one in ("ring_b", "ring_c"):
        assert {name.split(".")[1] for name in leans_on(one)} <= {"errors", "dialect"}


def test_each_ring_knows_those_inside_it_alone() -> None:
    """But for the ledger, which keeps the certified filter of ring B."""
    for place, one in enumerate(RINGS):
        for name in inside(one):
            beyond = {other for other in imports(name) if ring(other) not in (None, *RINGS[: place + 1])}
            if one == "ring_a":
                beyond = {other for other in beyond if ring(other) != "ledger"}
            if one == "ledger":
                beyond.discard("discreet.trusted.ring_b.gdp_filter")
            assert not beyond, name
    filters = closure(frozenset({"discreet.trusted.ring_b.gdp_filter"}))
    assert {name.split(".")[-1] for name in filters if ring(name) == "ring_b"} == {
        "further_losses",
        "gdp_filter",
        "interval",
        "shape",
    }


@pytest.mark.parametrize(("one", "most"), [("ring_a", 2_915), ("ledger", 1_365), ("ring_b", 2_840), ("ring_c", 2_600)])
def test_rings_grow_by_nobody_s_oversight(one: str, most: int) -> None:
    """The largest that a ring may be in lines of code. What is larger must say here why. Ring A: whole numbers of steps
    are kept beside values, which a third of a question's time went into; each person is in one period. The ledger: caps
    by day and month are held in the transaction that charges, and so is that a charge is for rows of its period; what
    holds of every storage stands apart from its file; 325 lines are for one on a server, and only for who keeps it
    there. Ring B: casts that one engine has in one form, and another in one for each type."""
    assert sum(map(code_lines, inside(one))) <= most


def test_the_list_is_as_the_imports_have_it() -> None:
    """`python tests/lib/trusted_list.py --write` writes it anew."""
    between = README.read_text("utf-8").split(BEGIN)[1].split(END)[0]
    assert between.strip() == listed()


@pytest.mark.parametrize("one", RINGS)
def test_each_ring_says_in_which_order_it_is_read(one: str) -> None:
    """Every module stands in the ring's own page once as a line of the reading order, and none that is not there."""
    text = (SOURCE / "trusted" / one / "README.md").read_text("utf-8")
    order = re.findall(r"`(\w+)\.py`", text)
    modules = {short(name) for name in inside(one)} - {"__init__"}
    assert modules <= set(order)
    assert set(order) - {"batch"} <= modules | {"deaths"}
