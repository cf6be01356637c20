"""Ring B: what a question may be beside counts, sums and means over one table.

Its modules register with ring A what they know of relations and mechanisms, so all of them are loaded together.
"""

from discreet.trusted.ring_b import belonging, jointly, questions, relations

__all__ = ["belonging", "jointly", "questions", "relations"]
