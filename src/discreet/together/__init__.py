"""Several data holders open one noisy count or sum over all their tables, and see nothing else of each other's.

Each splits its exact vector, with a share of the noise in it, into random shares, one for each party; each adds up the
shares it got; the sums together are the total with discrete Laplace noise (`ring_c.shares` argues what that hides
from whom). `session` is what they agree on, `meeting` how they connect, `protocol` the phases.
"""

from discreet.together.protocol import Contribution, Opened, take_part
from discreet.together.session import Party, Session, from_dict, read

__all__ = ["Contribution", "Opened", "Party", "Session", "from_dict", "read", "take_part"]
