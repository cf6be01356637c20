"""Privacy filters: they say whether a budget admits one more release, and are valid for adaptive analysts.

The promise of a budget (ε, δ) of which `keys_delta` is set apart: whatever is asked, in whatever order, everything
released together is (ε, δ)-DP for adding or removing one person.

A filter is a pair (e, r), what all that may still come is promised to be: h(e, r) = f_e ⊗ G_r, where f_e is the curve
of ε-DP's worst pair, randomised response of loss ±e, G_r that of N(0, 1) against N(r, 1), and ⊗ is composition. Each
release is paid from one of the two parts:

* from the pure part, e′ = e − ε′ for a release of loss ε′ ≤ e;
* from the Gaussian part, r′ = s for a release f with f ⊗ G_s ≥ G_r: s² = r² − μ² for Gaussian noise (Smith & Thakurta
  2022), and what `gdp_filter` proves for Laplace noise and others.

One filter. Let a release be f-DP and, whatever comes out, all that follows h(e′, r′)-DP. Then the whole is f ⊗ h(e′,
r′) (Dong, Roth & Su 2019, Theorem 3.2: what follows may be chosen by what came out). It remains that this is at least
h(e, r). If g ≥ g′, a random map takes the pair of g′ to that of g (Blackwell); the same map beside any third pair
shows g ⊗ k ≥ g′ ⊗ k. So for the Gaussian part f ⊗ G_s ⊗ f_e ≥ G_r ⊗ f_e, whatever proved f ⊗ G_s ≥ G_r: the proof of
a price needs nothing of what stands beside it. For the pure part f ≥ f_ε′, and f_ε′ ⊗ f_(e−ε′) ≥ f_e, because losses
of at most ε′ and of at most e − ε′ add to at most e, and f_e lies below all curves of e-DP pairs. Nothing but the
release's ε is used there, so bounded range and noise of any shape are charged alike. By induction from the last
release backwards, the interaction that a filter has admitted is h(e₀, r₀)-DP; one without a last release too, as every
set of outcomes is a limit of sets that finitely many releases decide. A batch is paid part by part, in any order, each
step a composition. A run that stays open beside others (a batch, a sparse vector) counts when it opens; what is left
of it keeps its place in the product, and stopping early is post-processing.

The family. The residue alone (0, r₀) at most of the δ, which pays everything from its Gaussian part; mixed pairs (e_j,
r_j), e_j in eighths of ε, which pay whatever has an ε from their pure part and the rest from the other, r_j as large
as δ_j(ε) ≤ δ_j is proved (`mu_beside_pure`); and (ε, 0), the pure sum, at δ = 0 (Rogers, Roth, Ullman & Vadhan 2016).
The δ_j add up to δ − keys_delta. *Every* filter is debited for *every* release, and one that has no room for what was
nevertheless released is dead, for good: of a mixed pair the sums of ε and of μ² are above it and stay so, the residue
is None. A release is admitted while one filter is alive after it. When the interaction ends, let J be the first that
is. The outcomes with J = j are outcomes of the interaction that stops before filter j would die, and equally probable
there, in both worlds. That interaction is (ε, δ_j)-DP. So ∫(dP − e^ε dQ)⁺ over all outcomes is at most Σ δ_j, the pure
sum adding nothing.

A release that finds private keys is ε-DP but for an event of probability δᵢ. Outcomes without such an event have the
densities Π(1 − δᵢ) times those above in both worlds; the events' probabilities add up in `keys` to at most keys_delta,
whichever filter is alive. In all: (ε, (δ − keys_delta) + keys_delta).

Other caps. From which part a release is paid depends on the release alone. So what one filter admitted under some caps
it would have admitted under larger ones: sums are compared with a larger e_j and r_j², and a charge r² − s² proved at
r is one at every larger r. All that was released under the smaller caps would have been released under the largest,
reckoned anew: the promise is that of the largest caps. It is not so for another family. There an outcome may be one
that the old filters admitted last, or one that the new ones did, and the δ of both add up (`Family.moved`).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

from attrs import evolve, field, frozen

from discreet.trusted.ring_a import gaussian_budget
from discreet.trusted.ring_a.curves import mu_beside_pure, mu_of_budget
from discreet.trusted.ring_a.exact import ceiling, floor, fraction
from discreet.trusted.ring_a.gaussian_budget import squares
from discreet.trusted.ring_a.loss import Batch, Loss

_FIRST, _PRESENT = 1, 2
_RESIDUE = {_FIRST: Fraction(1), _PRESENT: Fraction(4, 5)}  # the residue's part of δ
GAUSSIAN_PART = _RESIDUE[_PRESENT]
"""The part of δ − keys_delta that one filter has for Gaussian releases alone: no more of it can be spent on one."""
_MIXED = {_FIRST: (), _PRESENT: tuple((Fraction(part, 8), Fraction(1, 35)) for part in range(1, 8))}  # parts of ε and δ


@frozen
class Family:
    """The filters that an account began with, and keeps. The first family, of older ledgers, has no mixed pairs.

    `moved` says that an owner took this one when something was charged in another: then the promise is that of both.
    """

    number: int
    moved: bool = False


@frozen
class Spent:
    """What one account has spent, rounded up. `family` is None until something is charged.

    `finite` is the sum of ε of the releases that have one, `gaussian` the sum of μ² of the others, None where one has
    none. `mu_squared` is what the residue took of its own μ², None once a release was admitted that it did not.
    """

    family: Family | None = None
    finite: Fraction = Fraction(0)
    gaussian: Fraction | None = Fraction(0)
    mu_squared: Fraction | None = Fraction(0)
    keys: Fraction = Fraction(0)

    @property
    def pure(self) -> Fraction | None:
        """The sum of all ε; None once a release without a finite ε was admitted."""
        return self.finite if self.gaussian == 0 else None

    @property
    def nothing(self) -> bool:
        """Whether all four sums are 0, whatever the family."""
        return self.finite == self.gaussian == self.mu_squared == self.keys == 0

    def to_json(self) -> dict[str, Any]:
        """The state as ledgers keep it, sums as the texts of exact fractions; for `from_json`. Of the first family, and
        before anything is charged, it is written as older ledgers have it: with `pure`."""
        state: dict[str, Any] = {"mu_squared": _written(self.mu_squared), "keys": str(self.keys)}
        if self.family is None or self.family.number == _FIRST:
            return state | {"pure": _written(self.pure)}
        state |= {"family": self.family.number, "finite": str(self.finite), "gaussian": _written(self.gaussian)}
        return state | ({"moved": True} if self.family.moved else {})

    @staticmethod
    def from_json(state: dict[str, Any]) -> Spent:
        """The state that `to_json` wrote. Without a family and charged it is one of the first; of that, once `pure` was
        None, the sums are not known, and no filter asks for them. Raises ValueError on a family that is not known."""
        mu_squared, keys = _read(state["mu_squared"]), Fraction(state["keys"])
        if "family" not in state:
            pure = _read(state["pure"])
            spent = Spent(Family(_FIRST), pure or Fraction(0), None if pure is None else Fraction(0), mu_squared, keys)
            return Spent() if spent.nothing else spent
        if state["family"] not in _MIXED:
            raise ValueError("unknown filters")
        family = Family(state["family"], state.get("moved", False))
        return Spent(family, Fraction(state["finite"]), _read(state["gaussian"]), mu_squared, keys)


def _or_nothing(spent: Spent | None) -> Spent:
    return Spent() if spent is None else spent


@frozen
class PrivacyFilter:
    """A budget and what was spent of it. Immutable: `charge` gives the next state.

    `price` is what a release costs its Gaussian part (`gaussian_budget`): here the release's own μ². The filter that
    ledgers keep, `gdp_filter.CertifiedFilter`, differs in that alone.

    `epsilon`, `delta` and `keys_delta` are taken as written. Raises ValueError unless epsilon > 0 and
    0 ≤ keys_delta ≤ delta < 1.
    """

    epsilon: Fraction = field(converter=fraction)
    delta: Fraction = field(converter=fraction)
    keys_delta: Fraction = field(default=Fraction(0), converter=fraction)
    spent: Spent = field(default=None, converter=_or_nothing)

    price = staticmethod(squares)

    def __attrs_post_init__(self) -> None:
        if self.epsilon <= 0 or not 0 <= self.keys_delta <= self.delta < 1:
            raise ValueError("a filter needs epsilon > 0 and 0 <= keys_delta <= delta < 1")

    @property
    def family(self) -> Family:
        """The family of the first charge; before it, the present one."""
        return self.spent.family or Family(_PRESENT)

    @property
    def promised_delta(self) -> Fraction:
        """The δ of the promise: the budget's, and what the filters share of it once more where they were renewed."""
        return self.delta + (self.delta - self.keys_delta if self.family.moved else 0)

    @property
    def renewable(self) -> Family | None:
        """The present family, for a budget that began with another; None where there is nothing to renew.

        Who moves to it charges all that was released anew, by `after`, and then promises `promised_delta`.
        """
        return None if self.family.number == _PRESENT else Family(_PRESENT, moved=True)

    @property
    def mu_squared(self) -> Fraction:
        """The residue's whole μ², rounded down: the most that Gaussian releases alone can take."""
        return _opening(self.family.number, self.epsilon, self.delta - self.keys_delta)[0]

    @property
    def residue(self) -> Fraction | None:
        """What is left of the residue's μ²; None once it is dead."""
        taken = self.spent.mu_squared
        return None if taken is None or taken > self.mu_squared else self.mu_squared - taken

    @property
    def alive(self) -> bool:
        """Whether what was spent keeps the promise."""
        return (self.residue is not None or bool(self.pairs_left)) and self.keys_alive

    def after(self, loss: Loss) -> Self:
        """The state after one more release, admitted or not: every filter is debited, also those that it ends."""
        spent, left = self.spent, gaussian_budget.charge(self.price, loss, self.residue)
        pure, gaussian = amounts(loss)
        return evolve(
            self,
            spent=Spent(
                self.family,
                ceiling(spent.finite + pure),
                None if spent.gaussian is None or gaussian is None else ceiling(spent.gaussian + gaussian),
                None if left is None else ceiling(self.mu_squared - left),
                ceiling(spent.keys + loss.keys_delta),
            ),
        )

    def admits(self, loss: Loss) -> bool:
        """Whether one more release of this loss keeps the promise. Depends on losses alone, never on data."""
        return self.after(loss).alive

    def charge(self, loss: Loss) -> Self:
        """The filter after the release. Raises ValueError where it is not admitted."""
        after = self.after(loss)
        if not after.alive:
            raise ValueError("the budget does not admit this release")
        return after

    @property
    def pairs(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """(e_j, r_j²) of the mixed pairs, and of the pure sum."""
        return _opening(self.family.number, self.epsilon, self.delta - self.keys_delta)[1]

    @property
    def pairs_left(self) -> list[tuple[Fraction, Fraction]]:
        """What is left of those of them that are alive: ε and μ²."""
        finite, gaussian = self.spent.finite, self.spent.gaussian
        if gaussian is None:
            return []
        return [(e - finite, square - gaussian) for e, square in self.pairs if finite <= e and gaussian <= square]

    @property
    def keys_alive(self) -> bool:
        """Whether what was spent on private keys keeps its part of the promise."""
        return self.spent.keys <= self.keys_delta


@lru_cache(maxsize=256)
def _opening(number: int, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, tuple[tuple[Fraction, Fraction], ...]]:
    """The residue's μ², and (e_j, r_j²) of the other pairs: e_j as it is, r_j² rounded down."""
    whole = floor(mu_of_budget(epsilon, _RESIDUE[number] * delta) ** 2)
    mixed = ((part * epsilon, mu_beside_pure(epsilon, part * epsilon, share * delta)) for part, share in _MIXED[number])
    return whole, (*((pure, floor(mu**2)) for pure, mu in mixed), (epsilon, Fraction(0)))


def amounts(loss: Loss) -> tuple[Fraction, Fraction | None]:
    """What a release takes of a mixed pair's two parts; None where nothing is known of it."""
    pure, gaussian = Fraction(0), Fraction(0)
    for one in loss.parts if isinstance(loss, Batch) else (loss,):
        if one.pure is not None:
            pure += one.pure
        elif one.mu_squared is None:
            return pure, None
        else:
            gaussian += one.mu_squared
    return pure, gaussian


def _written(amount: Fraction | None) -> str | None:
    return None if amount is None else str(amount)


def _read(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)
