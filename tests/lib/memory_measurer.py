"""A measurer over a table in memory, with the mechanisms that the curator uses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.accounting import BoundedRange
from discreet.markov import Domain
from discreet.mechanisms import ExponentialMechanism, Gaussian
from discreet.synthesis.schedule import Schedule
from discreet.trusted.ring_a.curves import mu_of_budget
from discreet.trusted.ring_a.exact import fraction


def counts(rows, domain: Domain, clique):
    codes = np.zeros(len(rows), np.int64)
    for name in clique:
        codes = codes * domain.size(name) + rows[:, domain.place[name]]
    return np.bincount(codes, minlength=domain.cells(clique)).reshape(domain.shape(clique))


def planned(method: str, domain: Domain, epsilon, delta, **others) -> Schedule:
    """The schedule for a price in epsilon and delta, of which a tenth goes to the event."""
    event = fraction(delta) / 10
    return Schedule.of(method, domain, mu_of_budget(fraction(epsilon), fraction(delta) - event), event, **others)


class Memory:
    """Keeps the losses of what it was asked for, as the door does."""

    def __init__(self, rows, domain: Domain, rows_per_person: int = 1) -> None:
        self.rows, self.domain, self.person = rows, domain, rows_per_person
        self.spent: list = []
        self.exact: dict = {}

    def count(self, clique):
        if clique not in self.exact:
            self.exact[clique] = counts(self.rows, self.domain, clique)
        return self.exact[clique]

    def select(self, epsilon, candidates, predictions, weights, penalties) -> int:
        assert all(prediction.dtype == np.int64 for prediction in predictions)
        assert all(type(number) is int for number in [*weights, *penalties])
        assert all(weight > 0 for weight in weights)
        self.spent.append(BoundedRange(epsilon))
        scores = [
            weight * int(np.abs(self.count(clique) - prediction).sum()) - penalty
            for clique, prediction, weight, penalty in zip(candidates, predictions, weights, penalties, strict=True)
        ]
        return ExponentialMechanism(epsilon, self.person * max(weights)).release(scores)

    def _noisy(self, exact, sigma: Fraction, squared: int):
        mechanism = Gaussian(sigma)
        self.spent.append(mechanism.loss(squared))
        return np.array(mechanism.release(exact.reshape(-1).tolist()), np.int64).reshape(exact.shape)

    def measure(self, clique, sigma):
        return self._noisy(self.count(clique), sigma, self.person**2)

    def distances(self, cliques, answers, sigma):
        exact = [int(np.abs(self.count(c) - answer).sum()) for c, answer in zip(cliques, answers, strict=True)]
        return self._noisy(np.array(exact), sigma, self.person**2 * len(cliques))
