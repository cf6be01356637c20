"""The page that a respondent opens: what is asked, what is done to the answer, and a form that its script sends."""

from __future__ import annotations

from html import escape

from discreet.local.answers import Choice, Number, Ordered
from discreet.local.collection import Attribute, Collection
from discreet.local.explain import explained, guess, sent
from discreet.trusted.ring_a.exact import show

_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title>
<link rel="stylesheet" href="style.css">
<link rel="stylesheet" href="page.css">
<script type="module" src="page.mjs"></script>
<main class="narrow">
<h1>{name}</h1>
<p id="question">{question}</p>
<p>Chance changes your answer on this device, before anything is sent. Nobody else sees whether the report is true.</p>
<form id="form">
{fields}
<button class="first" id="send">Change by chance and send</button>
<noscript><p class="note warn">This page needs JavaScript, which changes your answer on your device.
Without it nothing is sent.</p></noscript>
</form>
<p id="said" role="status"></p>
<details hidden id="shown"><summary>What was sent</summary><pre id="sent"></pre></details>
<section>
<h2>What is sent, and what is not</h2>
<ul>
{sent}
</ul>
<h2>How well others can guess your answer</h2>
<p class="note" id="guess">{guess}</p>
<h2>What happens to your answer</h2>
<ul id="explained">
{explained}
</ul>
<p>All rules are in <a href="collection.json">one document</a>, and the program is <a href="client.mjs">one file</a>.
The document's SHA-256: <code>{hash}</code></p>
</section>
</main>
</html>
"""


def page(collection: Collection) -> str:
    """The page as HTML. What the collection says is escaped; no address of another origin is in it."""
    lines = [line for line in explained(collection).splitlines()[1:] if line != guess(collection)]
    fields = [_field(place, one) for place, one in enumerate(collection.attributes)]
    fields += [
        f'<div class="field"><label for="{name}">{name} (sent as you write it)</label> '
        f'<input class="public" id="{name}" name="{name}" maxlength="100" required></div>'
        for name in collection.public  # letters and _ alone
    ]
    return _PAGE.format(
        name=escape(collection.name),
        question=escape(collection.question),
        fields="\n".join(fields),
        sent="\n".join(f"<li>{escape(line)}</li>" for line in sent(collection)),
        guess=escape(guess(collection)),
        explained="\n".join(f"<li>{escape(line)}</li>" for line in lines),
        hash=collection.hash,
    )


def _field(place: int, attribute: Attribute) -> str:
    answer = attribute.answer
    asked = f'<label for="answer{place}">{escape(attribute.question or attribute.name or "Your answer")}</label>'
    start = f'class="answer" id="answer{place}" required'
    hint = ""
    if isinstance(answer, Choice):
        options = "".join(
            f'<option value="{at}">{escape(str(value))}</option>' for at, value in enumerate(answer.values)
        )
        control = f'<select {start}><option value="">choose …</option>{options}</select>'
    elif isinstance(answer, Number | Ordered):
        hint = (
            f"From {show(answer.low, 25)} to {show(answer.high, 25)}. A number outside counts as the nearest of these."
        )
        # a browser that refused what the client takes would keep some people's reports back, because of their answers
        control = f'<input type="number" step="any" {start} aria-describedby="hint{place}">'
    else:
        hint = f"Only the beginning counts: {answer.length} letters from a to z, or fewer others."
        control = f'<input type="text" maxlength="1000" {start} aria-describedby="hint{place}">'
    below = f'<p class="hint" id="hint{place}">{hint}</p>' if hint else ""
    return f'<div class="field">{asked}{control}{below}</div>'
