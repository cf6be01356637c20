"""The page that a respondent opens: what is asked, what is done to the answer, and a form that its script sends."""

from __future__ import annotations

from html import escape

from discreet.local.answers import Choice, Number, Ordered
from discreet.local.collection import Attribute, Collection
from discreet.local.explain import explained
from discreet.trusted.ring_a.exact import show

_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title>
<link rel="stylesheet" href="page.css">
<script type="module" src="page.mjs"></script>
<main>
<h1>{name}</h1>
<form id="form">
<p id="question">{question}</p>
{fields}
<button>Randomise and send</button>
<noscript><p>Answers are randomised by a script on your device. Without it, nothing can be sent.</p></noscript>
</form>
<p id="said" role="status"></p>
<details hidden id="shown"><summary>What was sent</summary><pre id="sent"></pre></details>
<section>
<h2>What is done to your answer</h2>
<ul id="explained">
{explained}
</ul>
<p>The rules are in <a href="collection.json">one document</a>, the program in <a href="client.mjs">one file</a>.
Document: <code>{hash}</code></p>
</section>
</main>
</html>
"""


def page(collection: Collection) -> str:
    """The page as HTML. What the collection says is escaped; no address of another origin is in it."""
    lines = explained(collection).splitlines()[1:]
    fields = [_field(place, one) for place, one in enumerate(collection.attributes)]
    fields += [
        f'<label>{name} (sent as it is) <input class="public" name="{name}" maxlength="100" required></label>'
        for name in collection.public  # letters and _ alone
    ]
    return _PAGE.format(
        name=escape(collection.name),
        question=escape(collection.question),
        fields="\n".join(fields),
        explained="\n".join(f"<li>{escape(line)}</li>" for line in lines),
        hash=collection.hash,
    )


def _field(place: int, attribute: Attribute) -> str:
    answer = attribute.answer
    label = escape(attribute.name or "Your answer")
    start = f'class="answer" id="answer{place}" required'
    if isinstance(answer, Choice):
        options = "".join(
            f'<option value="{at}">{escape(str(value))}</option>' for at, value in enumerate(answer.values)
        )
        return f'<label>{label} <select {start}><option value="">…</option>{options}</select></label>'
    if isinstance(answer, Number | Ordered):
        ends = f"{show(answer.low, 25)} to {show(answer.high, 25)}, what lies outside counts as the nearest"
        # a browser that refused what the client takes would keep some people's reports back, because of their answers
        return f'<label>{label} ({ends}) <input type="number" step="any" {start}></label>'
    return f'<label>{label} <input type="text" maxlength="1000" {start}></label>'
