"""The trusted package: closed, in rings, small, and listed as it is."""

from __future__ import annotations

import re

import pytest

from trusted_list import (
    BEGIN,
    BESIDE,
    END,
    PARTS,
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


def test_no_ring_knows_a_part_beside_it() -> None:
    """Who has no use for a part need not read it. A part itself knows ring A and the ledger alone; budgets by part know
    persons again by the ids of budgets that renew."""
    for name in frozenset().union(*map(inside, RINGS)):
        assert not {other for other in imports(name) if ring(other) in BESIDE}, name
    for one in BESIDE:
        assert leans_on(one) <= ERRORS
        known = {
            other for name in inside(one) for other in imports(name) if ring(other) not in ("ring_a", "ledger", one)
        }
        if one == "parts":
            known.discard("discreet.trusted.renewal.first_seen")
        assert known <= ERRORS | {"discreet.trusted.ring_b.gdp_filter"}


@pytest.mark.parametrize(
    ("one", "most"),
    [
        ("ring_a", 2_373),
        ("ledger", 1_050),
        ("ring_b", 3_238),
        ("ring_c", 3_439),
        ("ledger_server", 337),
        ("renewal", 75),
        ("parts", 80),
        ("allowances", 76),
    ],
)
def test_rings_grow_by_nobody_s_oversight(one: str, most: int) -> None:
    """The largest that a ring or part may be in lines of code. What is larger must say here why. Ring B: casts that
    one engine has in one form, and another in one for each type; what of ring A concerned nobody's counts, sums and
    means over one table: groups that are kept ready, public tables that list keys together, counts that only grow,
    which columns a term reads; how much persons contribute is released once, instead of at a part of the price of each
    question; the row before a row, 30 lines, which views of rows in time have, as only the engine can say who is
    before whom. Ring A: a reserve whose answer is the only one of its key; a threshold is held to exact numbers and to
    its two noises, 6 lines, as what is no number is above none; an interrupt that cannot be made anew takes no frames
    along, 6 lines. The ledger: an answer that is known before its charge is stored with it, so that nothing is charged
    that has not begun; accounts of parts, 20 lines, of which either one is debited or all; where it is only
    read nothing is appended, and others than its own methods read it so, 5 lines. Ring C: streams, 425 lines
    with what they alone ask of the ledger and with their secret state, which is held against the ledger also where no
    lock holds others back, shows nothing when it is interrupted, counts as a failure where it cannot be kept, and may
    be longer than what is encrypted at once; the synthetic state, 300 lines, whose thresholds outlive a process in the
    same kind of file, and which ends where the owner says that entries are lost and remembers which request got which
    reply, for which ring B says a noisy threshold and a reply apart; marginals of views over several tables in one
    run, and of weights by which persons with many rows weigh no more than others, 60 lines; first letters of texts as
    cells, 33 lines, which are looked up so that no row takes longer."""
    assert sum(map(code_lines, inside(one))) <= most


def test_the_list_is_as_the_imports_have_it() -> None:
    """`python tests/lib/trusted_list.py --write` writes it anew."""
    between = README.read_text("utf-8").split(BEGIN)[1].split(END)[0]
    assert between.strip() == listed()


@pytest.mark.parametrize("one", PARTS)
def test_each_ring_says_in_which_order_it_is_read(one: str) -> None:
    """Every module stands in the ring's own page once as a line of the reading order, and none that is not there."""
    text = (SOURCE / "trusted" / one / "README.md").read_text("utf-8")
    order = re.findall(r"`(\w+)\.py`", text)
    modules = {short(name) for name in inside(one)} - {"__init__"}
    assert modules <= set(order)
    assert set(order) - {"batch"} <= modules | {"deaths"}
