"""What ring B makes known to ring A: loaded wherever questions are planned or statements made."""

from discreet.trusted.ring_b import (
    belonging,
    functions,
    jointly,
    order_statements,
    relation_statements,
    relations,
)

__all__ = ["belonging", "functions", "jointly", "order_statements", "relation_statements", "relations"]
