"""What a collection does to an answer, in words for the person who is asked."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.local.answers import Choice, Number, Ordered
from discreet.local.channels import Projective, Response, composed
from discreet.local.collection import Attribute, Collection
from discreet.trusted.ring_a.exact import ceiling, show

WINDOWS = {"day": "a day", "month": "a month", "year": "a year", "ever": "for ever"}


WINDOWED = {"day": "day", "month": "month", "year": "year", "ever": "word ever, in place of a date"}


def explained(collection: Collection) -> str:
    """One sentence a line."""
    odds = min(Fraction(*one) for one in (collection.odds, collection.each_odds) if one)
    epsilon = collection.written if collection.each is None else show(collection.loss().epsilon)
    several = len(collection.attributes) > 1
    lines = [f"{collection.name}: {collection.question}"]
    if several:
        names = ", ".join(one.name for one in collection.attributes)
        lines.append(f"Your device picks one of these at random and sends nothing about the others: {names}.")
    lines += [_done(collection, one) for one in collection.attributes]
    lines.append(
        f"Chance decides on your device alone. No report is more than {show(ceiling(odds, 3))} times as likely for one "
        f"answer as for any other (ε = {epsilon})."
    )
    sure = odds / (odds + 1)
    lines.append(
        f"Someone who thinks two answers equally likely, and sees your report, can be at most {_percent(sure)} sure "
        f"which of the two is yours."
    )
    lines.append(_often(collection))
    if collection.public:
        lines.append(f"Sent as they are, without any randomness: {', '.join(collection.public)}.")
    lines.append("The report also holds a random token, which says nothing about you and lets it be counted once.")
    return "\n".join(lines)


def sent(collection: Collection) -> list[str]:
    """What leaves the device and what stays, a sentence each."""
    several = len(collection.attributes) > 1
    about = "about one of these questions, which chance picks" if several else "made from your answer by chance"
    lines = [f"Sent: one short report, {about}; the {WINDOWED[collection.window]}; and a random token."]
    if collection.public:
        lines.append(f"Sent as you write it: {', '.join(collection.public)}.")
    lines.append(
        "Not sent: your answer" + ("s" if several else "") + ", your name, or anything else about this device."
    )
    lines.append("As with every page, the server sees the network address from which you come, and when.")
    return lines


def guess(collection: Collection) -> str:
    """How much better somebody guesses who sees the reports, in numbers."""
    odds = min(Fraction(*one) for one in (collection.odds, collection.each_odds) if one)
    words = (
        "Somebody who thinks two answers equally likely guesses yours right 50 % of the time, without any report. "
        f"With your report, at most {_percent(odds / (odds + 1))} of the time."
    )
    if collection.reports > 1:
        most = 1 / (1 + math.exp(-float(collection.cap)))
        words += f" With all {collection.reports} reports that you may give {WINDOWS[collection.window]}, at most "
        words += f"{_percent(min(1, most + 1e-9))}."
    return words


def _done(collection: Collection, attribute: Attribute) -> str:
    answer, channel = attribute.answer, attribute.parts[0].channel
    subject = attribute.name or "Your answer"
    if isinstance(answer, Choice):
        assert isinstance(channel, Response | Projective)
        count, again = len(answer.values), collection.again(attribute.parts[0])
        chance = _percent(composed(channel, again)[0])
        if isinstance(channel, Response):
            others = "the other answer" if count == 2 else f"one of the {count - 1:,} others, each as likely"
            return f"{subject}: sent as it is with chance {chance}, else as {others}."
        return (
            f"{subject}: one of {count} becomes a number below {channel.outputs:,} that fits many answers; with chance "
            f"{chance} yours is among them."
        )
    ends = f"{show(answer.low)} to {show(answer.high)}" if isinstance(answer, Number | Ordered) else ""
    if isinstance(answer, Number):
        return f"{subject}: a number from {ends} is replaced by a random one, right only on average over many people."
    if isinstance(answer, Ordered):
        return f"{subject}: a range around your number from {ends} is named, and often a wrong one."
    return (
        f"{subject}: the first few of at most {answer.length} bytes are turned into a small number, often a wrong one."
    )


def _often(collection: Collection) -> str:
    window = WINDOWS[collection.window]
    if collection.each is None:
        again = "" if collection.window == "ever" else " Each new window takes a new report, and as much again."
        return (
            f"One report {window}: asked again, your device sends the same one, even if your answer has changed.{again}"
        )
    total = show(collection.cap)
    return (
        f"Up to {collection.reports} reports {window}. Each is randomised once more with ε = {show(collection.each)}: "
        f"together they cost at most ε = {total} however your answer changes, and at most ε = {collection.written} "
        f"if it does not."
    )


def _percent(share: float | Fraction) -> str:
    return f"{math.ceil(share * 1000) / 10:.1f} %"
