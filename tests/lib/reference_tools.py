"""The exact totals of a plan in plain Python, row by row, where no random limit bites."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.nodes import Aggregate, Clip, Filter, Quantity, Total, project_of
from discreet.trusted.ring_a.table import Column, Table, Type

NUMBERS = (Type.INTEGER, Type.NUMBER)


def stored(column: Column, value: Any) -> Any:
    """A value as the engine holds it after loading: no NaN, and within the declared bounds."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    number = column.type is Type.NUMBER
    for bound, nearer in ((column.maximum, min), (column.minimum, max)):
        if bound is not None:
            value = nearer(value, float(bound) if number else bound)  # type: ignore[arg-type]
    return value


def whole(expression: Expression) -> bool:
    """Whether a result is a 64-bit integer: nothing was computed."""
    if isinstance(expression, Call):
        if expression.operator == "coalesce":
            return all(whole(one) for one in expression.arguments)
        results = (*expression.arguments[1:-1:2], expression.arguments[-1])
        return expression.operator == "case" and all(whole(one) for one in results)
    if isinstance(expression, Literal):
        return expression.value is None or (type(expression.value) is int and abs(expression.value) < 2**63)
    return expression.type is Type.INTEGER


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Any:
    """The value of an expression on one row, NULL as None; arithmetic in doubles, NaN above all other numbers."""
    if isinstance(expression, ColumnOf):
        return row[expression.name]
    if isinstance(expression, Literal):
        value = expression.value
        return float(value) if isinstance(value, Fraction) else value
    operator, arguments = expression.operator, expression.arguments
    if operator == "case":
        for condition, result in zip(arguments[:-1:2], arguments[1:-1:2], strict=True):
            if evaluate(condition, row) is True:
                return doubled(expression, evaluate(result, row))
        return doubled(expression, evaluate(arguments[-1], row))
    values = [evaluate(argument, row) for argument in arguments]
    if operator == "coalesce":
        return doubled(expression, next((value for value in values if value is not None), None))
    if operator == "is_null":
        return values[0] is None
    if operator in ("and", "or"):
        decisive = operator == "or"
        if decisive in values:
            return decisive
        return None if None in values else not decisive
    if operator == "in":
        if values[0] is None:
            return None
        sides = [alike(arguments, [values[0], value]) for value in values[1:] if value is not None]
        if any(compare(left, right) == 0 for left, right in sides):
            return True
        return None if None in values[1:] else False
    if None in values:
        return None
    return called(expression, values)


def called(expression: Call, values: list[Any]) -> Any:
    operator = expression.operator
    if operator == "not":
        return not values[0]
    if operator == "negate":
        return -float(values[0])
    if operator == "absolute":
        return abs(float(values[0]))
    if operator == "like":
        return like(values[0], values[1])
    if operator in ("add", "subtract", "multiply", "divide"):
        left, right = (float(value) for value in values)
        if operator == "divide":
            return None if right == 0 else left / right
        return {"add": left + right, "subtract": left - right, "multiply": left * right}[operator]
    order = compare(*alike(expression.arguments, values))
    return {
        "equal": order == 0,
        "not_equal": order != 0,
        "less": order < 0,
        "less_equal": order <= 0,
        "greater": order > 0,
        "greater_equal": order >= 0,
    }[operator]


def like(text: str, pattern: str) -> bool:
    """LIKE: the places of the text that some prefix of the pattern reaches."""
    here = {0}
    for letter in pattern:
        if letter == "%":
            here = set(range(min(here), len(text) + 1)) if here else here
        else:
            here = {place + 1 for place in here if place < len(text) and letter in ("_", text[place])}
    return len(text) in here


def alike(arguments: Sequence[Expression], values: list[Any]) -> list[Any]:
    """Numbers that meet are doubles unless all of them are 64-bit integers."""
    if arguments[0].type in NUMBERS and not all(whole(argument) for argument in arguments):
        return [float(value) for value in values]
    return values


def doubled(call: Call, value: Any) -> Any:
    return float(value) if value is not None and call.type in NUMBERS and not whole(call) else value


def compare(left: Any, right: Any) -> int:
    """−1, 0 or 1; NaN is equal to itself and above everything."""
    if isinstance(left, float):
        left, right = ((math.isnan(side), 0.0 if math.isnan(side) else side) for side in (left, right))
    return int(left > right) - int(left < right)


def quantised(quantity: Quantity, row: Mapping[str, Any]) -> int | None:
    """A row's integer, or None."""
    value, lattice = evaluate(quantity.expression, row), quantity.lattice
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if lattice is None:
        return 1
    if whole(quantity.expression) and lattice.step == 1:
        return max(lattice.low, min(lattice.high, value))
    if (1 / lattice.step).denominator == 1:
        scaled = float(value) * float(1 / lattice.step)
    else:
        scaled = float(value) / float(lattice.step)
    if math.isinf(scaled):
        return lattice.high if scaled > 0 else lattice.low
    return max(lattice.low, min(lattice.high, math.floor(scaled + 0.5)))


def total_of(total: Total, rows: Sequence[tuple[Any, ...]]) -> int | None:
    """One total of some rows, given as their quantities."""
    if total.kind == "rows":
        return len(rows)
    assert total.quantity is not None
    known = [row[total.quantity] for row in rows if row[total.quantity] is not None]
    if total.kind == "present":
        return len(known)
    return sum(known) if known else None


def totals(plan: Aggregate, table: Table, rows: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """Each group's totals. The limits of the plan must not bite."""
    project = project_of(plan)
    predicate = project.child.predicate if isinstance(project.child, Filter) else None
    groups: dict[tuple[Any, ...], dict[Any, list[tuple[Any, ...]]]] = defaultdict(lambda: defaultdict(list))
    for number, raw in enumerate(rows):
        row = {column.name: stored(column, raw.get(column.name)) for column in table.columns}
        person = number if table.person is None else row[table.person]
        keys = tuple(row[key.name] for key in project.keys)
        shown = all(
            key.null if value is None else key.values is None or value in key.values
            for key, value in zip(project.keys, keys, strict=True)
        )
        if person is None or not shown or (predicate is not None and evaluate(predicate, row) is not True):
            continue
        groups[keys][person].append(tuple(quantised(quantity, row) for quantity in project.quantities))
    if not project.keys and not groups:
        groups[()] = defaultdict(list)
    return {
        keys: tuple(_over_persons(plan, total, persons) for total in plan.totals) for keys, persons in groups.items()
    }


def _over_persons(plan: Aggregate, total: Total, persons: Mapping[Any, list[tuple[Any, ...]]]) -> int:
    if total.kind == "persons":
        return len(persons)
    result = 0
    for rows in persons.values():
        value = total_of(total, rows)
        if value is not None and total.bounds is not None:
            assert isinstance(plan.child, Clip)
            value = max(total.bounds[0], min(total.bounds[1], value))
        result += value or 0
    return result
