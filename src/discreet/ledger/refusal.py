"""The words of a refusal for the budget: what was asked, what is left, what would still fit."""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting import Filter, Gaussian, Loss, Pure
from discreet.errors import BudgetError
from discreet.exact import ceiling, floor, show, sqrt_ceiling
from discreet.ledger.states import TOTAL

_DIGITS = 6
_HALVINGS = 20


def refusal(account: str, filter_: Filter, loss: Loss) -> BudgetError:
    """The error of an account that does not admit a loss. It depends on prices only.

    What was asked is rounded up and what is left is rounded down, so that the two never look equal.
    """
    whose = "the budget" if account == TOTAL else f"analyst {account}'s budget"
    asked, left = _amounts(filter_, loss)
    return BudgetError(f"{whose} does not allow this question", asked=asked, left=left, fits=_fits(filter_, loss))


def _amounts(filter_: Filter, loss: Loss) -> tuple[str, str]:
    spent = filter_.spent
    overdrawn = spent.keys > filter_.keys_delta  # its cap was lowered
    if loss.pure is not None:
        room = Fraction(0) if spent.pure is None else filter_.epsilon - spent.pure
        asked, left = f"ε {_up(loss.pure)}", f"ε {_down(room)}"
    else:
        mu = loss.mu if isinstance(loss, Gaussian) else sqrt_ceiling(loss.mu_squared or Fraction(0))
        asked, left = f"μ {_up(mu)}", f"μ {_down(_root(filter_.residue))}"
    if loss.keys_delta:
        asked += f" and δ {_up(loss.keys_delta)} for private keys"
        left += f" and δ {_down(filter_.keys_delta - spent.keys)} for private keys"
    return asked, "nothing, its δ for private keys is overdrawn" if overdrawn else left


def _fits(filter_: Filter, loss: Loss) -> str:
    """The largest price of a pure release that is admitted, nearly, and never above it."""
    spent = filter_.spent
    known = Fraction(0) if spent.pure is None else max(Fraction(0), filter_.epsilon - spent.pure)
    low, high = Fraction(0), max(known, 2 * _root(filter_.residue))
    for _ in range(_HALVINGS):
        middle = floor((low + high) / 2, _DIGITS)
        low, high = (middle, high) if filter_.admits(Pure(middle)) else (low, middle)
    price = max(low, floor(known, _DIGITS))
    if price == 0 or not filter_.admits(Pure(price)):
        return "nothing is left"
    if spent.keys + loss.keys_delta > filter_.keys_delta:
        return f"declare the values of the group keys, and ask at a price of at most ε {show(price)}"
    noise = " with Laplace noise" if loss.pure is None else ""
    return f"a price of at most ε {show(price)}{noise}"


def _up(value: Fraction) -> str:
    return show(ceiling(value, _DIGITS), _DIGITS)


def _down(value: Fraction) -> str:
    return show(floor(max(Fraction(0), value), _DIGITS), _DIGITS)


def _root(value: Fraction | None) -> Fraction:
    """A rational not above √value, 0 where nothing is left."""
    return sqrt_ceiling(value) * (1 - Fraction(1, 1 << 60)) if value else Fraction(0)
