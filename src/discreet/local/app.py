from __future__ import annotations


class App:
    def __init__(self, collector: object) -> None: ...
