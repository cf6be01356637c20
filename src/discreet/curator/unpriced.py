"""Questions that name no price: dashboards, psql and assistants ask without one, and again and again.

In this order, and nothing is spent that nobody meant to spend:

1. The answer that is stored for whoever asks, to the same question over the same snapshot, whatever was paid for it:
   the dearest. It is free. Where a question has several measured tables, all of them are stored, or none counts; one
   that waits for a released value is looked for with the value that the stored answers before it give.
2. The price that the owner has declared for it, `[analysts.NAME] question`, else `[question] epsilon`, which tools that
   ask by themselves (psql, assistants) never take: from here on it is a question like any other. Asked again it is an
   exact repeat; others' answers at this price are debited from the account alone, as ever; caps by day and month hold.
3. A refusal, with prices and what each would buy.

Privacy: which of these it is, and which stored answer is given, follows from what was asked and paid under the same
account, from the declaration, and from numbers that were released before (which decide what waits for them, as they do
where a price is named). No row has a part in it, and no true number. Nothing is charged in the first case: the stored
answer's key is held against the ledger again before the door is asked, and what was stored for an account stays so. It
tells nobody what others asked: an account of one's own is looked up by its own debits, and an analyst without one finds
only what was measured under the same name. (Whoever asks as nobody in particular shares all that was stored so, at any
price; who has the owner's rights can read the ledger.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from discreet.errors import QuestionError
from discreet.intervals.expected import GROUP_FOR_MEANS
from discreet.intervals.noise import three_digits
from discreet.trusted.ring_a.exact import show

SHARES = (Fraction(1, 100), Fraction(1, 30), Fraction(1, 10))
"""Of the budget of whoever asks: the prices that a refusal names."""

_MOST_COLUMNS = 4


def no_price(
    account: str, examples: Sequence[tuple[Fraction, Mapping[str, float]]], means: Sequence[str]
) -> QuestionError:
    """The refusal of a question without a price: what each price would buy, as half widths by column; those of `means`
    in groups of a usual size."""
    said = "; ".join(f"ε {show(price)} buys {_bought(errors)}" for price, errors in examples)
    message = "the question has no price: " + (said or "nothing is left that would buy one")
    if any(name in means for _, errors in examples for name in errors):
        message += f" (means in groups of {GROUP_FOR_MEANS:,})"
    least, example = (show(examples[place][0]) if examples else "0.01" for place in (0, -1))
    declared = f"[analysts.{account}] question" if account else "[question] epsilon"
    fix = f"name epsilon, as in epsilon = {example}; or the owner declares {declared} = {least} for what names none"
    return QuestionError("price", message, where="epsilon", fix=fix)


def _bought(errors: Mapping[str, float]) -> str:
    if not errors:
        return "an answer whose error is known with it"
    columns = [f"{name} ±{three_digits(error)}" for name, error in errors.items()]
    more = len(columns) - _MOST_COLUMNS
    return ", ".join(columns[:_MOST_COLUMNS]) + (f" and {more} more" if more > 0 else "")
