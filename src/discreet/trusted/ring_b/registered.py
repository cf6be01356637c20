"""Registers ring B's nodes and mechanisms with ring A; imported wherever questions are planned or statements are
made."""

from discreet.trusted.ring_b import (
    belonging,
    functions,
    held_groups,
    jointly,
    listed_groups,
    order_statements,
    relation_statements,
    relations,
)

__all__ = [
    "belonging",
    "functions",
    "held_groups",
    "jointly",
    "listed_groups",
    "order_statements",
    "relation_statements",
    "relations",
]
