"""From a plan to exact integers: compilation, guards, and the process in which the database runs.

Exact integers made here go to the door and nowhere else.
"""
