"""What a collection does to an answer, in words for the person who is asked."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.local.answers import Choice, Number, Ordered
from discreet.local.channels import Projective, Response, composed
from discreet.local.collection import Attribute, Collection
from discreet.trusted.ring_a.exact import ceiling, show

WINDOWS = {"day": "a day", "month": "a month", "year": "a year", "ever": "for ever"}


WINDOWED = {"day": "the day", "month": "the month", "year": "the year", "ever": "the word ever, in place of a date"}


def explained(collection: Collection) -> str:
    """One thought a line."""
    odds, _ = _odds(collection)
    epsilon = collection.written if collection.each is None else show(collection.loss().epsilon)
    lines = [f"{collection.name}: {collection.question}"]
    if len(collection.attributes) > 1:
        names = ", ".join(_subject(one) for one in collection.attributes)
        lines.append(f"Your device picks one of these by chance and sends nothing about the others: {names}.")
    lines += [_done(collection, one) for one in collection.attributes]
    lines.append(
        f"What chance decided stays on your device. Any report is at most {show(ceiling(odds, 3))} times as likely for "
        f"one answer as for another (ε = {epsilon})."
    )
    lines += [guess(collection), _often(collection)]
    if collection.public:
        lines.append(f"Sent as you write it, unchanged: {', '.join(collection.public)}.")
    lines.append("A random number goes with the report, so that it is counted only once. It says nothing about you.")
    return "\n".join(lines)


def sent(collection: Collection) -> list[str]:
    """What leaves the device and what stays, a thought each."""
    several = len(collection.attributes) > 1
    about = "about one of these questions, which chance picks" if several else "made of your answer and of chance"
    lines = [
        f"Sent: one short report. It is {about}.",
        f"Sent with it: {WINDOWED[collection.window]}, and a random number.",
    ]
    if collection.public:
        lines.append(f"Sent as you write it, unchanged: {', '.join(collection.public)}.")
    lines.append("Not sent: your name, or anything else about this device. Nobody sees whether the report is true.")
    lines.append("As with every page that you open, the server sees your network address, and the time.")
    return lines


def guess(collection: Collection) -> str:
    """How much better somebody guesses who sees the reports, in numbers."""
    _, sure = _odds(collection)
    words = (
        "Somebody who thinks two answers equally likely guesses yours right 50 % of the time, without any report. "
        f"With your report, at most {_percent(sure)} of the time."
    )
    if collection.reports > 1:
        most = 1 / (1 + math.exp(-float(collection.cap)))
        words += f" With all {collection.reports} reports that you may give {WINDOWS[collection.window]}, at most "
        words += f"{_percent(min(1, most + 1e-9))}."
    return words


def _odds(collection: Collection) -> tuple[Fraction, Fraction]:
    """How many times as likely a report can be for one answer as for another, and how sure that makes a reader."""
    odds = min(Fraction(*one) for one in (collection.odds, collection.each_odds) if one)
    return odds, odds / (odds + 1)


def _subject(attribute: Attribute) -> str:
    """What respondents read above the answer, in quotes where it is a question."""
    return f"“{attribute.question}”" if attribute.question else attribute.name or "Your answer"


def _done(collection: Collection, attribute: Attribute) -> str:
    answer, channel = attribute.answer, attribute.parts[0].channel
    subject = _subject(attribute)
    if isinstance(answer, Choice):
        assert isinstance(channel, Response | Projective)
        count, again = len(answer.values), collection.again(attribute.parts[0])
        chance = _percent(composed(channel, again)[0])
        if isinstance(channel, Response):
            others = "the other answer" if count == 2 else f"one of the {count - 1:,} others, each equally likely"
            return f"{subject}: with chance {chance} the report says your answer, otherwise {others}."
        return (
            f"{subject}: the report is a number below {channel.outputs:,} that stands for many of the {count:,} "
            f"answers. With chance {chance} yours is one of these."
        )
    ends = f"{show(answer.low)} to {show(answer.high)}" if isinstance(answer, Number | Ordered) else ""
    if isinstance(answer, Number):
        return f"{subject}: a random number takes the place of yours ({ends}). Only the average of many is right."
    if isinstance(answer, Ordered):
        return f"{subject}: the report names a part of the range from {ends}. Your number may lie in another."
    return (
        f"{subject}: the first letters of your text, at most {answer.length} bytes, become a small number. "
        f"It may be the number of another text."
    )


def _often(collection: Collection) -> str:
    window = collection.window
    if collection.each is None:
        later = (
            "" if window == "ever" else f" Each new {window} has a new report, which says as much about you once more."
        )
        again = "Asked again, your device sends the same one, even if your answer has changed."
        return f"One report {WINDOWS[window]}. {again}{later}"
    total = show(collection.cap)
    return (
        f"Up to {collection.reports} reports {WINDOWS[window]}. Each is changed by chance once more (ε = "
        f"{show(collection.each)}). Together they cost at most ε = {total} however often your answer changes, and at "
        f"most ε = {collection.written} if it stays the same."
    )


def _percent(share: float | Fraction) -> str:
    return f"{math.ceil(share * 1000) / 10:.1f} %"
