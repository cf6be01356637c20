"""Frequent texts (heavy hitters), found prefix by prefix from hashed prefixes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.local.channels import Counts, Floats, Hashed, mixed
from discreet.local.estimate import COLUMNS, Oracle, quantile_of
from discreet.local.report import fingerprint

MOST = 64
"""So many prefixes of one length are followed further."""

CHANCE = 0.01
"""The chance that at one length any prefix is followed that nobody has."""


@dataclass(frozen=True)
class Prefixes:
    """The reports about prefixes of one length."""

    channel: Hashed
    reports: Counts

    def shares(self, prefixes: Sequence[bytes]) -> tuple[Floats, Floats]:
        """Estimates of the shares of these prefixes, and their variances."""
        seeds = (self.reports // self.channel.buckets).astype(np.uint32)
        buckets = (self.reports % self.channel.buckets).astype(np.uint32)
        size = np.uint32(self.channel.buckets)
        supports = [int(np.count_nonzero(mixed(seeds, fingerprint(one)) % size == buckets)) for one in prefixes]
        oracle = Oracle(self.channel, None, len(seeds), sampled=True)
        shares = oracle.shares(np.array(supports, np.int64))
        return shares, oracle.variances(np.clip(shares, 0, 1))


def found(levels: Sequence[Prefixes], confidence: float) -> list[dict[str, Any]]:
    """Rows of the texts that many share, the most frequent first.

    From the empty prefix on, all bytes are tried behind each prefix that is kept, and kept are those whose estimate
    stands out from zero by more than chance among so many allows, at most `MOST`. A text that ends is filled up with
    zero bytes; once its end stood out it is kept, and its estimates at all further lengths, which are of different
    respondents, are averaged. Who is found was picked by these estimates: those that barely stand out are a little too
    high.
    """
    kept: list[bytes] = [b""]
    ended: dict[bytes, list[tuple[float, float]]] = {}
    for level in levels:
        tried = [one + bytes([byte]) for one in kept for byte in _next(one)]
        if not tried or not len(level.reports):
            return []
        shares, variances = level.shares(tried)
        nobody = float(Oracle(level.channel, None, len(level.reports), sampled=True).variances(np.zeros(1))[0])
        least = quantile_of(1 - 2 * CHANCE / len(tried)) * math.sqrt(nobody)
        order = [
            int(place) for place in np.argsort(-shares) if shares[place] > least or tried[place].endswith(b"\0\0")
        ][:MOST]
        kept = [tried[place] for place in order]
        for place in order:
            ended.setdefault(tried[place].rstrip(b"\0"), []).append((float(shares[place]), float(variances[place])))
    rows = []
    for whole in {one.rstrip(b"\0") for one in kept}:
        text = whole.decode("utf-8", "ignore")
        if text.encode("utf-8") != whole:
            continue
        # a prefix that ends here, as against one that goes on, was seen at the lengths beyond its own only
        seen = ended[whole][1:] if len(whole) < len(levels) else ended[whole]
        precision = sum(1 / variance for _, variance in seen)
        share = sum(share / variance for share, variance in seen) / precision
        wide = quantile_of(confidence) / math.sqrt(precision)
        rows.append((text, share, share - wide, share + wide))
    rows.sort(key=lambda row: -row[1])
    return [dict(zip(COLUMNS, (*row, min(1.0, max(0.0, row[1]))), strict=True)) for row in rows]


def _next(prefix: bytes) -> range:
    """The bytes that may stand behind a prefix: only zeros behind a zero, and none at the very start."""
    if prefix.endswith(b"\0"):
        return range(1)
    return range(1 if not prefix else 0, 256)
