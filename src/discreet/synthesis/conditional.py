"""Draws columns of rows whose other columns are given: the rows of a child table under persons that are made already.

What is given, as attributes of the person a row belongs to, is what it is: a model of all columns together would draw
it anew. So each new column is drawn given those before it. For each of the model's marginals that it closes (whose
other columns are known by then), a table of factors: the probability of value v in row i is in proportion to
b(v)·Π_q f_q(x_i, v), x_i what row i has in the marginal's other columns, b the column alone. The factors are raked, one
marginal after the other, until the expected counts over these very rows are the model's (iterative proportional
fitting; Deming & Stephan 1940), each line of a marginal scaled to as many rows as have it here. So the model's pairs of
the new with a given column are kept, however given columns depend on one another among these rows.

Where rows follow one another (`row_before`), what the row before has is given too, once that row is drawn: all first
rows are drawn, then all second ones, and so on. A factor of what the row before has changes all rows that follow, so
factors are found by trial: a sweep of raking over rows that were drawn, of which each factor moves by a part, and these
rows are drawn anew. In a long chain a little too much noise leads times far astray, and they never come back. So times
are drawn without any order and then sorted, which leaves them as near as without it; where they were measured beside
those before, also like other columns, and what is nearer to the model's marginals is taken.

In the model persons may weigh alike, whatever the number of their rows: then counts are sums of weights here, in which
each row has its part of its person's. The rows themselves are of as many as each person has.

All is computed from what was released: no private row is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from discreet.markov import Clique, Domain, MarkovRandomField
from discreet.markov.rows import GOLDEN
from discreet.synthesis.row_before import RowSequences

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

SWEEPS, CLOSE, FITTED = 30, 1e-3, 20_000
"""Sweeps over all marginals at most; until no line moves by more than that part; over so many rows, drawn of all."""
PASSES, PART = 10, 0.4
"""So often rows that follow one another are drawn by trial, and by what part of a step factors move: chains sway where
it is much more."""
MOST_BESIDE = 1 << 20
_AT_ONCE, _FAR = 50_000, 30.0


@dataclass(frozen=True)
class _Raked:
    """A marginal as the new column's last axis: where each row stands in the others, and the logarithms of factors."""

    lines: Codes
    factors: Floats


@dataclass(frozen=True)
class _FittedConditional:
    """How a new column follows from others: the logarithms of its own shares, the factors of each marginal, and those
    of what no row can have."""

    alone: Floats
    factors: Mapping[Clique, Floats]
    apart: Mapping[Clique, Floats]

    def drawn(self, domain: Domain, table: Mapping[str, Codes], name: str, generator: np.random.Generator) -> Codes:
        """A value for each row of a table."""
        every = [*self.apart.items(), *self.factors.items()]
        full = [_Raked(_places(domain, table, clique, name), factors) for clique, factors in every]
        return _values(self.alone, full, _rows(table), generator)


def drawn(
    model: MarkovRandomField,
    given: Mapping[str, Codes],
    weights: Codes,
    cliques: Sequence[Clique],
    generator: np.random.Generator,
    rules: Sequence[Clique] = (),
    followed: RowSequences | None = None,
) -> Codes:
    """Rows of the model's columns, in its order, those of `given` as they are. The order of rows stays. `weights` are
    what each row weighs in the model's marginals, `cliques` those of them that the new columns keep. Of `rules`, new
    columns some of whose cells no row can have, the model has none, and so have the rows. `followed` says which rows
    follow one another, and what of the row before stands beside each."""
    domain = model.domain
    if not _rows(given):
        return np.zeros((0, len(domain.names)), int)
    behind = set() if followed is None else set(followed.before.values())
    table = dict(given)
    for name in domain.names:
        if name not in given and name not in behind:
            fitted = _fitted(model, table, name, weights, cliques, rules, generator)
            table[name] = fitted.drawn(domain, table, name, generator)
    if followed is not None:
        table = followed.sorted(table)
        ways: list[Mapping[str, Codes]] = [{**given, followed.time: table[followed.time]}]
        ways += [given] * any({followed.time, followed.before[followed.time]} <= set(one) for one in cliques)
        tried = [_in_time(model, way, table, weights, cliques, rules, followed, generator) for way in ways]
        table = min(tried, key=lambda one: _missed(model, one, weights, cliques))
    return np.column_stack([table[name] for name in domain.names])


def _in_time(
    model: MarkovRandomField,
    given: Mapping[str, Codes],
    table: Mapping[str, Codes],
    weights: Codes,
    cliques: Sequence[Clique],
    rules: Sequence[Clique],
    followed: RowSequences,
    generator: np.random.Generator,
) -> dict[str, Codes]:
    """Rows that follow one another, of which some columns are given. The `table` is where trials begin; they are made
    of so many rows as are fitted, in whole groups."""
    some = followed.some(FITTED, generator)
    part, weighed = followed.only(some), weights[some]
    known = {name: codes[some] for name, codes in given.items()}
    rows = {name: codes[some] for name, codes in table.items()}
    behind = set(followed.before.values())
    new = [name for name in model.domain.names if name not in given and name not in behind]
    fits: dict[str, _FittedConditional] = {}
    for _ in range(PASSES):
        beside = {**known, **part.behind(rows)}
        for name in new:
            start = fits.get(name, _FittedConditional(np.zeros(0), {}, {}))
            fits[name] = _fitted(model, beside, name, weighed, cliques, rules, generator, start)
            beside[name] = rows[name]
        rows = _in_turn(model.domain, known, fits, part, generator)
    return _in_turn(model.domain, given, fits, followed, generator)


def _in_turn(
    domain: Domain,
    given: Mapping[str, Codes],
    fits: Mapping[str, _FittedConditional],
    followed: RowSequences,
    generator: np.random.Generator,
) -> dict[str, Codes]:
    """Draws all first rows, then all second ones, and so on; with what the row before has beside each."""
    table = {**given, **{name: np.zeros(len(followed.group), np.int64) for name in fits}}
    for rows in followed.turns():
        now = {name: table[name][rows] for name in given} | followed.behind(table, rows)
        for name, fitted in fits.items():
            table[name][rows] = now[name] = fitted.drawn(domain, now, name, generator)
    return table | followed.behind(table)


def _missed(model: MarkovRandomField, table: Mapping[str, Codes], weights: Codes, cliques: Sequence[Clique]) -> float:
    """How far the rows are from the model's marginals, as shares, added up; with those of single columns."""
    domain, missed = model.domain, 0.0
    for clique in dict.fromkeys([*((name,) for name in domain.names), *cliques]):
        code = np.zeros(len(weights), np.int64)
        for name in clique:
            code = code * domain.size(name) + table[name]
        target = model.marginal(clique).ravel()
        made = np.bincount(code, weights, len(target))
        missed += float(np.abs(made / made.sum() - target / max(target.sum(), 1e-300)).sum())
    return missed


def _rows(table: Mapping[str, Codes]) -> int:
    return len(next(iter(table.values())))


def _fitted(
    model: MarkovRandomField,
    table: Mapping[str, Codes],
    name: str,
    weights: Codes,
    cliques: Sequence[Clique],
    rules: Sequence[Clique],
    generator: np.random.Generator,
    before: _FittedConditional | None = None,
) -> _FittedConditional:
    """How a new column follows from those of the table, fitted to these rows; with factors from `before` one sweep
    further, by a part of its steps, and with the column alone as a marginal too."""
    domain, rows = model.domain, len(weights)
    closed = [one for one in dict.fromkeys(cliques) if name in one and all(n == name or n in table for n in one)]
    alone = np.maximum(model.marginal((name,)), 1e-9)
    pairs = [one for one in closed if len(one) > 1] + [(name,)] * (before is not None)
    targets = [_lines(domain, model.marginal(one), one, name) for one in pairs]
    apart = _possible(model, table, rules, name)
    some = np.arange(rows) if rows <= FITTED else generator.choice(rows, FITTED, replace=False)
    log, heavy = np.log(alone / alone.sum()), weights[some].astype(float)
    there = {column: codes[some] for column, codes in table.items()}
    start = {} if before is None else before.factors
    found = [
        _Raked(_places(domain, there, one, name), start.get(one, np.zeros(target.shape)).copy())
        for one, target in zip(pairs, targets, strict=True)
    ]
    fixed = [_Raked(_places(domain, there, one, name), factors) for one, factors in apart.items()]
    sweeps, part = (SWEEPS, 1.0) if before is None else (1, PART)
    _rake(log, targets, found, heavy, fixed, sweeps, part)
    return _FittedConditional(log, {one: two.factors for one, two in zip(pairs, found, strict=True)}, apart)


def _possible(
    model: MarkovRandomField, table: Mapping[str, Codes], rules: Sequence[Clique], name: str
) -> dict[Clique, Floats]:
    """Which values of a new column no row can have beside those that it has in columns of the same rules, or of rules
    about these: the model has no such row, whatever the columns that come later, so each row can go on. Of very many
    columns it is the rules alone that end here."""
    near = {name}
    while more := {other for rule in rules if near & set(rule) for other in rule} - near:
        near |= more
    if not any(name in rule for rule in rules):
        return {}
    cliques = [model.domain.clique(other for other in model.domain.names if other in near and other in {*table, name})]
    if model.domain.cells(cliques[0]) > MOST_BESIDE:
        cliques = [rule for rule in rules if name in rule and set(rule) <= {*table, name}]
    found = {}
    for clique in cliques:
        there = _lines(model.domain, model.marginal(clique), clique, name) > 0
        found[clique] = np.where(there | ~there.any(1, keepdims=True), 0.0, -np.inf)
    return found


def _lines(domain: Domain, marginal: Floats, clique: Clique, name: str) -> Floats:
    """A marginal with the new column as its last axis, all others as one."""
    axes = [*(place for place, one in enumerate(clique) if one != name), clique.index(name)]
    return np.ascontiguousarray(marginal.transpose(axes)).reshape(-1, domain.size(name))


def _places(domain: Domain, table: Mapping[str, Codes], clique: Clique, name: str) -> Codes:
    """In which line of a marginal each row stands."""
    others = [one for one in clique if one != name]
    place = np.zeros(_rows(table), np.int64)
    for one in others:
        place = place * domain.size(one) + table[one]
    return place


def _rake(
    alone: Floats,
    targets: Sequence[Floats],
    found: Sequence[_Raked],
    weights: Floats,
    fixed: Sequence[_Raked] = (),
    sweeps: int = SWEEPS,
    part: float = 1.0,
) -> None:
    """Changes the factors until under them the expected weights of the rows are the targets', beside some that are
    fixed; after so many sweeps at most, each by a part of its steps."""
    if not found:
        return
    rows = len(weights)
    sums = [
        csr_matrix((weights / weights.mean(), (one.lines, np.arange(rows))), (len(target), rows))
        for target, one in zip(targets, found, strict=True)
    ]
    weight = np.tile(alone, (rows, 1))
    for one in (*fixed, *found):
        weight += one.factors[one.lines]
    for _ in range(sweeps):
        moved = 0.0
        for one, target, total in zip(found, targets, sums, strict=True):
            expected = total @ _shares(weight)
            held = expected.sum(1, keepdims=True)
            shares = target / np.maximum(target.sum(1, keepdims=True), 1e-300)
            wanted = np.where((held > 0) & (target.sum(1, keepdims=True) > 0), held * shares, expected)
            small = 1e-6 + 1e-9 * held
            step = part * np.clip(np.log((wanted + small) / (expected + small)), -_FAR, _FAR)
            moved = max(moved, float(np.abs(wanted - expected).sum()) / rows)
            one.factors[:] = np.clip(one.factors + step, -_FAR, _FAR)
            weight += step[one.lines]
        if moved < CLOSE:
            break


def _shares(weight: Floats) -> Floats:
    """Probabilities of each row, from logarithms of weights."""
    weight -= weight.max(1, keepdims=True)
    found: Floats = np.exp(weight)
    found /= found.sum(1, keepdims=True)
    return found


def _values(alone: Floats, raked: Sequence[_Raked], rows: int, generator: np.random.Generator) -> Codes:
    """A value for each row. Rows that stand alike are neighbours when points are dealt out, so that these are spread
    evenly over their common distribution (as in `markov.rows`)."""
    if not rows:
        return np.zeros(0, np.int64)
    found = np.empty(rows, np.int64)
    order = np.lexsort([generator.random(rows), *(one.lines for one in raked)])
    points = (np.arange(rows) * GOLDEN + generator.random()) % 1.0
    for start in range(0, rows, _AT_ONCE):
        now = order[start : start + _AT_ONCE]
        weight = np.tile(alone, (len(now), 1))
        for one in raked:
            weight += one.factors[one.lines[now]]
        sums = _shares(weight).cumsum(1)
        chosen = (sums < points[start : start + len(now), None] * sums[:, -1:]).sum(1)
        found[now] = np.minimum(chosen, len(alone) - 1)
    return found


def dependences(domain: Domain, given: Mapping[str, Codes], weights: Codes) -> list[tuple[Clique, Codes]]:
    """What given columns weigh alone, and of the pairs of a tree over them that says most of how they depend on one
    another (Chow & Liu 1968): what a model of new columns beside them starts from."""
    names = [name for name in domain.names if name in given]
    found: list[tuple[Clique, Codes]] = [((name,), _weighed(given[name], weights, domain.size(name))) for name in names]
    pairs: list[tuple[float, Clique, Codes]] = []
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            code = given[one] * domain.size(other) + given[other]
            counts = _weighed(code, weights, domain.cells((one, other))).reshape(domain.shape((one, other)))
            pairs.append((_information(counts), (one, other), counts))
    group = {name: name for name in names}
    for _, (one, other), counts in sorted(pairs, key=lambda pair: -pair[0]):
        if group[one] != group[other]:
            old, new = group[one], group[other]
            group = {name: new if held == old else held for name, held in group.items()}
            found.append(((one, other), counts))
    return found


def _weighed(codes: Codes, weights: Codes, cells: int) -> Codes:
    return np.rint(np.bincount(codes, weights, cells)).astype(np.int64)


def _information(counts: Codes) -> float:
    """The mutual information of a pair, in nats times what all rows weigh."""
    expected = np.multiply.outer(counts.sum(1).astype(float), counts.sum(0)) / max(1, counts.sum())
    held = counts > 0
    return float((counts[held] * np.log(counts[held] / expected[held])).sum())
