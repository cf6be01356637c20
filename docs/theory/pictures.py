"""The pictures of the pages, from the pages' own code: `python docs/theory/pictures.py [folder]`, at the root."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from snippets import FOLDER, page

BLUE, LIGHT, ORANGE, GREY = "#0b5394", "#6fa8dc", "#b45f06", "#777777"
NORMAL = NormalDist()


def panels(count: int = 1) -> tuple[Figure, Any]:
    """A figure with so many panels side by side, in the one style of these pages."""
    figure = Figure(figsize=(7.4, 3.1), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0]
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
        axis.xaxis.label.set_size(9)
        axis.yaxis.label.set_size(9)
    return figure, axes[0] if count == 1 else axes


def legend(axis: Any, **options: Any) -> None:
    axis.legend(fontsize=8, frameon=False, **options)


def counting(quick: bool) -> Figure:
    chance = page("counting", "chance").chance
    figure, (left, right) = panels(2)
    line, places = np.linspace(-4, 9, 60 if quick else 600), np.arange(-4, 10)
    for centre, colour, label in ((3, BLUE, "with Emil: 3"), (2, ORANGE, "without: 2")):
        left.plot(line, np.exp(-np.abs(line - centre) / 2) / 4, color=colour, lw=1, alpha=0.6)
        left.plot(places, [chance(k, centre) for k in places], "o", ms=4, color=colour, label=label)
    left.set_xlabel("answer")
    left.set_ylabel("probability (dots), density (lines)")
    legend(left)
    right.plot(line, np.exp((np.abs(line - 2) - np.abs(line - 3)) / 2), color=GREY, lw=1)
    right.plot(places, [chance(k, 3) / chance(k, 2) for k in places], "o", ms=4, color=BLUE)
    for sign in (0.5, -0.5):
        right.axhline(math.exp(sign), color=ORANGE, lw=1, ls="--")
    right.set_xlabel("answer")
    right.set_ylabel("ratio, between e^(−½) and e^(½)")
    return figure


def names(quick: bool) -> Figure:
    code = page("names", "inside")
    mechanism, truth = code.mechanism, np.array(code.exact)
    rounds = 20 if quick else 2_000
    largest = [int(np.abs(np.array(mechanism.release(code.exact)) - truth).max()) for _ in range(rounds)]
    figure, axis = panels()
    places = np.arange(6, 20)
    axis.bar(places, [largest.count(k) / rounds for k in places], color=LIGHT, label=f"{rounds:,} releases")
    exact = [code.inside(int(k)) - code.inside(int(k) - 1) for k in places]
    axis.plot(places, exact, "o", ms=5, color=BLUE, label="exact probability")
    axis.axvline(code.bound, color=ORANGE, ls="--", label=f"Theorem 3.8: {code.bound:.1f}")
    axis.set_xlabel("largest of ten thousand errors, in persons")
    axis.set_ylabel("share of the releases")
    legend(axis)
    return figure


def conditions(quick: bool) -> Figure:
    code = page("conditions", "winning")
    figure, axis = panels()
    rates = np.geomspace(0.005, 1, 8 if quick else 60)
    chances = np.array([code.winning(code.counts, float(rate)) for rate in rates])
    order = np.argsort(code.counts)[::-1]
    for place, colour in zip(order, (BLUE, ORANGE, GREY), strict=False):
        label = f"{code.names[place]}, {code.counts[place]} persons"
        axis.plot(rates, chances[:, place], color=colour, label=label)
    weights = [np.exp(rate * (np.array(code.counts) - max(code.counts))) for rate in rates]
    first = [weight[order[0]] / weight.sum() for weight in weights]
    axis.plot(rates, first, color=BLUE, ls=":", label="the first, by the exponential mechanism")
    axis.set_xscale("log")
    axis.set_xlabel("ε")
    axis.set_ylabel("probability to win")
    legend(axis)
    return figure


def response(quick: bool) -> Figure:
    code = page("randomised-response", "central")
    figure, axis = panels()
    persons = [10**power for power in range(2, 9, 3 if quick else 1)]
    for epsilon, colour in ((Fraction(1, 2), BLUE), (Fraction(1), ORANGE), (Fraction(3), GREY)):
        channel = code.randomised_response(epsilon)
        local = [math.sqrt(channel.variance(n, n // 3)) for n in persons]
        axis.plot(persons, local, "o-", ms=3, color=colour, label=f"local, ε = {float(epsilon):g}")
        axis.plot(persons, [code.central(epsilon)] * len(persons), "--", color=colour, label="central")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("persons")
    axis.set_ylabel("standard deviation of a count")
    legend(axis, ncols=3)
    return figure


def distributions(quick: bool) -> Figure:
    figure, (left, right) = panels(2)
    scale = 2.0
    sigma, q = scale * math.sqrt(2), math.exp(-1 / scale)
    line, places = np.linspace(-8, 8, 80 if quick else 800), np.arange(-8, 9)
    bell = np.exp(-(line**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    rounded = [NORMAL.cdf((k + 0.5) / sigma) - NORMAL.cdf((k - 0.5) / sigma) for k in places]
    left.plot(line, np.exp(-np.abs(line) / scale) / (2 * scale), color=BLUE, lw=1, label="Laplace")
    left.plot(places, (1 - q) / (1 + q) * q ** np.abs(places), "o", ms=4, color=BLUE, label="discrete Laplace")
    left.plot(line, bell, color=ORANGE, lw=1, label="Gaussian")
    left.plot(places, rounded, "s", ms=3.5, color=ORANGE, label="rounded Gaussian")
    left.set_xlabel("noise, both of standard deviation 2.8")
    left.set_ylabel("probability, density")
    left.set_ylim(0, 0.33)
    legend(left, ncols=2, loc="upper center")
    right.plot(line, (np.abs(line - 1) - np.abs(line)) / -scale, color=BLUE, label="Laplace: bounded")
    right.plot(line, (2 * line - 1) / (2 * sigma**2), color=ORANGE, label="Gaussian: unbounded, rarely large")
    right.set_xlabel("answer; exact answer 1 or 0")
    right.set_ylabel("logarithm of the ratio")
    right.set_ylim(-1.3, 1.7)
    legend(right)
    return figure


def composition(quick: bool) -> Figure:
    rules = page("composition", "rules").rules
    figure, (left, right) = panels(2)
    prices = np.geomspace(0.005, 0.5, 4 if quick else 40).round(4)
    styles = [(GREY, "-"), (LIGHT, ":"), (LIGHT, "-"), (ORANGE, ":"), (ORANGE, "-"), (BLUE, "-"), (BLUE, ":")]
    counts = {name: np.array([rule(float(price), 1.0, 1e-6) for price in prices]) for name, rule in rules.items()}
    best = counts["a batch declared beforehand"]
    for (name, found), (colour, style) in zip(counts.items(), styles, strict=True):
        left.plot(prices, np.where(found > 0, found, np.nan), style, color=colour, label=name)
        right.plot(prices, found / best, style, color=colour)
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xlabel("ε₀ of one Laplace release")
    left.set_yscale("log")
    left.set_ylabel("releases admitted by (1, 10⁻⁶)")
    right.set_ylabel("as a share of a declared batch")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def gaussian(quick: bool) -> Figure:
    code = page("gaussian", "true_delta")
    figure, (left, right) = panels(2)
    epsilons = np.geomspace(0.05, 30, 6 if quick else 60).round(4)
    wide = np.array([code.classic(epsilon, 1e-6) for epsilon in epsilons])
    exact = np.array([float(code.gaussian_sigma(float(epsilon), "1e-6")) for epsilon in epsilons])
    left.loglog(epsilons, wide, color=ORANGE, label="classic formula")
    left.loglog(epsilons, exact, color=BLUE, label="exact")
    left.set_ylabel("σ at δ = 10⁻⁶")
    legend(left)
    right.semilogx(epsilons, wide / exact, color=ORANGE)
    right.axhline(1, color=BLUE, lw=1)
    right.axvspan(1, 30, color=LIGHT, alpha=0.15)
    right.text(1.3, 1.5, "the theorem does not\nspeak of ε ≥ 1", fontsize=8, va="top")
    right.text(0.06, 1.02, "below this line the promise is broken", fontsize=8, color=BLUE, va="bottom")
    right.set_ylabel("classic σ over exact σ")
    for axis in (left, right):
        axis.set_xlabel("ε")
    return figure


def floating_point(quick: bool) -> Figure:
    naive = page("floating-point", "naive").naive
    figure, axis = panels()
    size = 300 if quick else 4_000
    for exact, colour in ((0, ORANGE), (1, BLUE)):
        releases = naive(exact, 1, size)
        inside = releases[(releases > 0.001) & (releases < 0.25)]
        mantissa = (inside * 2.0**66).astype(object)
        bits = [66 - ((int(m) & -int(m)).bit_length() - 1) for m in mantissa]
        shift = 0.12 if exact else -0.12
        label = f"exact answer {exact}: releases in (0, ¼)"
        axis.plot(inside, np.array(bits) + shift, ".", ms=3, color=colour, label=label)
    axis.axhline(53.5, color=GREY, lw=1, ls="--", label="above the line: only for an exact answer of 0")
    axis.set_ylim(44, 63)
    axis.set_xlabel("release")
    axis.set_ylabel("place of its last bit, 2^−…")
    legend(axis, loc="upper right", markerscale=3)
    return figure


def threshold(quick: bool) -> Figure:
    code = page("threshold", "shown")
    figure, axes = panels(2)
    persons = range(1, 26, 6 if quick else 1)
    for axis in axes:
        axis.plot(
            persons, [float(code.best.chance(n)) for n in persons], "o-", ms=3, color=BLUE, label="optimal selection"
        )
        axis.plot(
            persons, [code.shown(n) for n in persons], "s-", ms=3, color=ORANGE, label="threshold on a noisy count"
        )
        axis.set_xlabel("persons in the group; ε = 1, δ = 10⁻⁵")
    axes[0].set_ylabel("probability to be shown")
    axes[1].set_yscale("log")
    legend(axes[1], loc="lower right")
    return figure


def odds(quick: bool) -> Figure:
    figure, (left, right) = panels(2)
    alarms = np.linspace(0, 1, 21 if quick else 301)
    with np.errstate(divide="ignore"):
        for epsilon, colour in ((0.5, LIGHT), (1, BLUE), (3, ORANGE)):
            curve = np.maximum(0, np.maximum(1 - math.exp(epsilon) * alarms, math.exp(-epsilon) * (1 - alarms)))
            left.plot(alarms, curve, color=colour, label=f"any release with ε = {epsilon}")
    mu_of = page("odds", "mu_of_budget").mu_of_budget
    for epsilon, colour in (("0.5", LIGHT), ("1", BLUE), ("3", ORANGE)):
        mu = float(mu_of(Fraction(epsilon), Fraction("1e-6")))
        curve = [1.0, *(NORMAL.cdf(NORMAL.inv_cdf(1 - a) - mu) for a in alarms[1:-1]), 0.0]
        right.plot(alarms, curve, color=colour, label=f"Gaussian budget ({epsilon}, 10⁻⁶)")
    for axis in (left, right):
        axis.plot([0, 1], [1, 0], ":", color=GREY, label="a fair coin")
        axis.set_xlabel("false alarms")
        axis.set_aspect("equal")
        legend(axis, loc="upper right")
    left.set_ylabel("misses, at least")
    return figure


PICTURES: dict[str, Callable[[bool], Figure]] = {
    "counting": counting,
    "names": names,
    "conditions": conditions,
    "response": response,
    "distributions": distributions,
    "composition": composition,
    "gaussian": gaussian,
    "floating-point": floating_point,
    "threshold": threshold,
    "odds": odds,
}


def draw(folder: Path, quick: bool = False) -> None:
    """Writes every picture, in few colours: small files."""
    for name, picture in PICTURES.items():
        buffer = io.BytesIO()
        picture(quick).savefig(buffer, format="png", dpi=40 if quick else 130)
        Image.open(buffer).convert("RGB").quantize(64).save(folder / f"{name}.png", optimize=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER / "images")
