"""What is priced is what is measured: nobody changes it between."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator

import attrs
import pytest

from discreet.trusted import ring_a


def classes() -> Iterator[type]:
    """All classes of ring A that have fields."""
    for module in pkgutil.iter_modules(ring_a.__path__, f"{ring_a.__name__}."):
        for one in vars(importlib.import_module(module.name)).values():
            own = isinstance(one, type) and one.__module__ == module.name
            if own and (dataclasses.is_dataclass(one) or attrs.has(one)):
                yield one


@pytest.mark.parametrize("one", list(classes()), ids=lambda one: f"{one.__module__.split('.')[-1]}.{one.__name__}")
def test_values_are_frozen(one: type) -> None:
    made = object.__new__(one)
    error = dataclasses.FrozenInstanceError if dataclasses.is_dataclass(one) else attrs.exceptions.FrozenError
    with pytest.raises(error):
        made.anything = 1  # type: ignore[attr-defined]
