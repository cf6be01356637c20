"""Made-up tables that answer as the real one does, and what they may be trusted with; and, under the same name, the
textbook's constructions of such tables on explicit universes."""

from discreet.textbook import *  # noqa: F403
from discreet.textbook import __all__ as __all__
