"""The rows of weights that answer linear queries with the least variance.

`optimum` solves the matrix mechanism (Li, Miklau, Hay, McGregor & Rastogi 2015) for Gaussian noise: among all rows B
whose columns have a norm of at most 1, the one with the least total variance tr(G·(BᵀB)⁺), G = WᵀW the queries' Gram
matrix. With X = BᵀB this is convex: minimise tr(G·X⁻¹) with diag X ≤ 1. Its Lagrangian is stationary where G = X·Λ·X
with Λ diagonal, so X = Λ^(−1/2)·(Λ^(1/2)·G·Λ^(1/2))^(1/2)·Λ^(−1/2), and the dual is the concave function
2·tr(Λ^(1/2)·G·Λ^(1/2))^(1/2) − tr Λ, largest where Λ = diag (Λ^(1/2)·G·Λ^(1/2))^(1/2). That equation is iterated
(Denisov, McMahan, Rush, Smith & Thakurta 2022, Theorem 3.2). The dual with Λ a multiple of the identity is the bound of
Li & Miklau 2013: (Σ singular values of W)²/n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.workload.items import AnyIntegers, Floats

CLOSE = 2e-3
"""How far above the least variance is near enough, as a part."""

_ROUNDS = 40
_COARSE, _COARSE_ROUNDS = 64, 6
_BITS = 18


@dataclass(frozen=True)
class Optimum:
    """Rows with columns of norm at most 1, their total variance, and a variance that no rows are below."""

    rows: Floats
    variance: float
    bound: float


def optimum(gram: Floats) -> Optimum:
    """Rows that are within `CLOSE` of the least total variance, where 40 rounds are enough for that."""
    weights = _start(gram)
    for _ in range(_ROUNDS):
        values, vectors, diagonal = _round(gram, weights)
        total = float(diagonal.sum())
        longest = float((diagonal / weights).max())
        bound = total * total / float(weights.sum())
        if total * longest <= bound * (1 + CLOSE):
            break
        weights = _positive(diagonal)
    rows = (vectors * np.sqrt(values)) @ vectors.T / np.sqrt(weights * longest)
    return Optimum(rows, total * longest, bound)


def _start(gram: Floats) -> Floats:
    """Weights to start from: where there are many cells, nearly those of every second cell."""
    if len(gram) <= _COARSE:
        return np.ones(len(gram))
    coarse = gram[::2, ::2]
    weights = _start(coarse)
    for _ in range(_COARSE_ROUNDS):
        weights = _positive(_round(coarse, weights)[2])
    return np.repeat(weights, 2)[: len(gram)]


def _round(gram: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """The root of Λ^(1/2)·G·Λ^(1/2): its eigenvalues and eigenvectors, and its diagonal."""
    root = np.sqrt(weights)
    squares, vectors = np.linalg.eigh(root[:, None] * gram * root)
    values = np.sqrt(np.maximum(squares, 0))
    return values, vectors, ((vectors * values) * vectors).sum(axis=1)


def _positive(weights: Floats) -> Floats:
    return np.maximum(weights, float(weights.max()) * 1e-9)


def singular_value_bound(gram: Floats) -> float:
    """No rows whose columns have norm 1 give a smaller total variance (Li & Miklau 2013, Theorem 3)."""
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0))
    return float(values.sum()) ** 2 / len(gram)


def whole(rows: Floats, basis: AnyIntegers) -> AnyIntegers:
    """As many whole rows as `basis` has, which tell what a multiple of `rows` tells, nearly. They are combinations of
    the rows of `basis`, and those of them, so what `basis` asks follows without any error."""
    mixture = rows if _unit(basis) else np.linalg.qr(rows @ np.linalg.pinv(basis.astype(float)))[1]
    largest = float(np.abs(mixture).max(initial=0.0)) or 1.0
    found = np.rint(mixture * (2.0**_BITS / largest)).astype(np.int64)
    return found if _unit(basis) else found @ basis


def _unit(rows: AnyIntegers) -> bool:
    return len(rows) == rows.shape[1] and not (rows - np.eye(len(rows), dtype=np.int64)).any()


def inverse(rows: Floats) -> Floats:
    """rows⁺, by elimination where that is good enough."""
    if len(rows) == rows.shape[1]:
        try:
            found: Floats = np.linalg.inv(rows).astype(np.float64)
            if np.abs(found @ rows - np.eye(len(rows))).max(initial=0.0) < 1e-7:
                return found
        except np.linalg.LinAlgError:
            pass
    return np.linalg.pinv(rows, rcond=1e-10).astype(np.float64)


def independent(rows: AnyIntegers) -> AnyIntegers:
    """The rows that are no combination of those before them."""
    if _unit(rows):
        return rows
    chosen: list[int] = []
    rest = rows.astype(float)
    for place in range(len(rows)):
        length = float(np.linalg.norm(rest[place]))
        if length > 1e-7 * max(1.0, float(np.linalg.norm(rows[place]))):
            direction = rest[place] / length
            rest = rest - np.outer(rest @ direction, direction)
            chosen.append(place)
    return rows[chosen]


def tree(cells: int, branches: int) -> AnyIntegers:
    """The sums of a tree over ordered cells, from the cells up to those of `branches` nodes or fewer (Hay, Rastogi,
    Miklau & Suciu 2010)."""
    levels, width = [np.eye(cells, dtype=np.int64)], 1
    while -(-cells // width) > branches:
        width *= branches
        owner = np.arange(cells) // width
        levels.append((owner == np.arange(owner[-1] + 1)[:, None]).astype(np.int64))
    return np.concatenate(levels)
