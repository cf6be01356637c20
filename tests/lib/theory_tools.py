"""Where the theory pages and their programs are."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
THEORY = ROOT / "docs" / "theory"
sys.path.insert(0, str(THEORY))

SMALLEST = 1e-6  # a right program fails a test by chance with at most this probability
