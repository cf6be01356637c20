"""Text of a BudgetError: what was asked, what is left, what would still fit; and of the LedgerError for a declaration
that does not go with what the ledger knows."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from discreet.accounting.balance import for_publishing, for_questions, price_delta
from discreet.accounting.room import gaussian_room, pure_room
from discreet.errors import BudgetError, LedgerError, QuestionError, refused
from discreet.trusted.ledger.accounts import PART, TOTAL, Caps
from discreet.trusted.ring_a.exact import ceiling, floor, show, sqrt_ceiling
from discreet.trusted.ring_a.filter import PrivacyFilter
from discreet.trusted.ring_a.loss import GaussianLoss, Loss

_DIGITS = 6


def asked_otherwise() -> QuestionError:
    """The error of a request id under which another question was asked before, as the ledger has it."""
    return refused("request", "this request id belongs to another question", "request", "use a new request id")


def asked_before() -> QuestionError:
    """The error of a request id under which the same text was asked before, and of which something else was measured
    then."""
    message = (
        "this question was asked under this request id before: of other rows, as before a refresh, or at another price;"
        " nothing was spent"
    )
    return refused("request", message, "request", "use a new request id: it is measured anew, and charged")


def refusal(
    account: str,
    filter_: PrivacyFilter,
    loss: Loss,
    whole: PrivacyFilter,
    keep: Loss | None = None,
    *,
    window: str = "",
    until: str = "",
) -> BudgetError:
    """The error of an account that does not admit a loss; `whole` is the whole budget, `keep` what the owner keeps
    of it: what is left is what would be left after that. With `window` it is what the account may spend in this one,
    and the next begins at `until`, if that is known. It depends on prices only, and on the clock.

    What was asked is rounded up and what is left is rounded down, so that the two never look equal.
    """
    whose = whose_budget(account)
    if keep is not None:
        filter_ = filter_.after(keep)
        whose += ", of which a part is kept for publishing,"
    asked, left = _amounts(filter_, loss)
    fits = _fits(filter_, loss, whole)
    if window:
        whose += f" of this {window}"
        fits += f"; or ask again from {until} on, in UTC" if until else ""
    return BudgetError(f"{whose} does not allow this question", asked=asked, left=left, fits=fits)


def whose_budget(account: str) -> str:
    """An account in words."""
    if account.startswith(PART):
        return f"the budget of the part {account.removeprefix(PART)}"
    return "the budget" if account == TOTAL else f"analyst {account}'s budget"


def explained(error: LedgerError, persons: Mapping[str, tuple[str, int]]) -> LedgerError:
    """The same error with a longer text, where there is one. `persons` are who counts as one in a table, and of how
    many rows of one the declaration speaks."""
    match error.code, dict(error.facts):
        case "raised", {"account": str(account), "known": Caps() as known, "wanted": Caps() | None as wanted}:
            declared = error.facts.get("declared")
            longer = raised(account, known, wanted, str(error.facts.get("window", "")), declared)
        case "apart", {"account": str(account), "most": Caps() as most, "wanted": Caps() as wanted}:
            longer = apart(account, most, wanted)
        case "unit", {"table": str(table), "known": str(known), "total": PrivacyFilter() as total} if table in persons:
            longer = other_unit(table, known, *persons[table], total)
        case "unit", {"table": str(table), "known": str(known)} if table.startswith(PART):
            message = f"persons are known again in parts, and were read here as {known} in the answers so far"
            fix = "declare how the source is read as before; or begin a new ledger, with `--spend-unknown`"
            longer = LedgerError("unit", f"tables.{table.removeprefix(PART)}: {message}", fix=fix)
        case _:
            return error
    longer.where = error.where
    return longer


def raised(account: str, known: Caps, wanted: Caps | None, window: str = "", declared: object = None) -> LedgerError:
    """The error of a declaration that allows an account more than the ledger does, at all or in one window; with what
    is `declared`, where the account would have more than that, since more was approved."""
    whose = whose_budget(account)
    whose += f" of a {window}" if window else ""
    fix = (
        "if another declaration names the same ledger, give both the same budget; to raise it for good, the owner runs"
        " `discreet ledger DECLARATION --raise-budget`"
    )
    says = _caps(wanted) if wanted else "none"
    if isinstance(declared, Caps):
        says = f"{_caps(declared)}: with what was approved that is {says}"
    return LedgerError("raised", f"{whose} is {_caps(known)} in the ledger, and the declaration says {says}", fix=fix)


def apart(account: str, most: Caps, wanted: Caps) -> LedgerError:
    """The error of a cap that is neither larger nor smaller than the largest so far. All that was and will be released
    is within the larger of both in each part, ε, δ for keys, δ for all else: more than either of them promises."""
    whose = whose_budget(account)
    keys = max(most.keys_delta, wanted.keys_delta)
    rest = max(most.delta - most.keys_delta, wanted.delta - wanted.keys_delta)
    whole = Caps(max(most.epsilon, wanted.epsilon), rest + keys, keys)
    message = f"{whose} was {_caps(most)} and would be {_caps(wanted)}: larger in one part, smaller in another"
    return LedgerError("apart", message, fix=f"declare what holds for both: {_caps(whole)}")


def other_unit(table: str, known: str, person: str, k: int, total: PrivacyFilter) -> LedgerError:
    """The error of a declaration that means other persons than those for whom answers were charged.

    Whoever is k of the old persons was promised k times the ε (the group bound: Dwork & Roth 2014, Theorem 2.2); δ
    grows by the factor 1 + e^ε + … + e^((k−1)ε), and is not worked out here.
    """
    spent = total.spent
    if spent.pure is None or spent.keys:
        figure = f"{k} times the ε that was spent, and more than {k} times the δ"
    else:
        figure = f"ε {_up(spent.pure)} becomes ε {_up(k * spent.pure)}"
    message = f"a person was {known} in the answers so far, and the declaration says {person}"
    fix = (
        "declare the person as before; or begin a new ledger for the new persons, and charge it for the old answers"
        f" with `--spend-unknown`: K times what was spent, where one is K of the old persons (K = {k}: {figure})"
    )
    return LedgerError("unit", f"tables.{table}: {message}", fix=fix)


def _caps(caps: Caps) -> str:
    return f"{caps}, of it {show(caps.keys_delta)} for private keys" if caps.keys_delta else str(caps)


def _amounts(filter_: PrivacyFilter, loss: Loss) -> tuple[str, str]:
    spent = filter_.spent
    overdrawn = spent.keys > filter_.keys_delta  # its cap was lowered
    if loss.pure is not None:
        asked, left = f"ε {_up(loss.pure)}", f"ε {_down(pure_room(filter_))}"
    else:
        mu = loss.mu if isinstance(loss, GaussianLoss) else sqrt_ceiling(loss.mu_squared or Fraction(0))
        asked, left = f"μ {_up(mu)}", f"μ {_down(_root(gaussian_room(filter_)))}"
    if loss.keys_delta:
        asked += f" and δ {_up(loss.keys_delta)} for private keys"
        left += f" and δ {_down(filter_.keys_delta - spent.keys)} for private keys"
    return asked, "nothing, its δ for private keys is overdrawn" if overdrawn else left


def _fits(filter_: PrivacyFilter, loss: Loss, whole: PrivacyFilter) -> str:
    """The largest price that is admitted, nearly, and never above it; with its δ where what was asked needs one."""
    if loss.pure is None:
        event = bool(loss.keys_delta)
        price = for_publishing(filter_, whole, event)
        if price:
            return f"a price of at most ε {show(price)} and δ {show(price_delta(whole, price, event))}"
        price = for_questions(filter_)
        return f"questions without delta, at a price of at most ε {show(price)}" if price else "nothing is left"
    price = for_questions(filter_)
    if not price:
        return "nothing is left"
    if filter_.spent.keys + loss.keys_delta > filter_.keys_delta:
        return f"declare the values of the group keys, and ask at a price of at most ε {show(price)}"
    return f"a price of at most ε {show(price)}"


def _up(value: Fraction) -> str:
    return show(ceiling(value, _DIGITS), _DIGITS)


def _down(value: Fraction) -> str:
    return show(floor(max(Fraction(0), value), _DIGITS), _DIGITS)


def _root(value: Fraction | None) -> Fraction:
    """A rational not above √value, 0 where nothing is left."""
    return sqrt_ceiling(value) * (1 - Fraction(1, 1 << 60)) if value else Fraction(0)
