"""What the owner's side and the child call alike in the folder of kept tables."""

LOCK = "building.lock"
"""Who has locked this file of the folder makes files there, or removes them."""

SIDE = "side"
"""The child's own database, as the engine calls it, and how its file's name begins."""

BEFORE = "before"
"""A table's file as it was before its source grew, as the engine calls it while the next one is made."""

LEFT = "left"
"""How the names of files begin that keep what questions built beside tables."""

MOST_FILES, MOST_BUILT = 4, 8
"""So many of these files are kept of a table at most, and so many sets of totals or positions in them."""
