"""Several tables published together over HTTP: the same release as here, whole, and never a part of a frozen table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import discreet
from discreet.cli import main
from discreet.errors import EngineError, QuestionError
from discreet.service.accounts import Account, Role
from discreet.service.jobs import Jobs
from discreet.service.publication_costs import foreseen, related_tables
from discreet.service.requests import ARROW, CSV
from discreet.synthesis.synthetic_tables import SyntheticTables
from related_tables import CUSTOMERS, ORDERS, shop
from service_tools import Served, served

NAMES = ["customers", "orders"]
DECLARATION = """
[budget]
epsilon = 50
delta = 1e-5
[analysts.ana]
epsilon = 20
[analysts.bob]
epsilon = 0.2
"""
DECLARATION += CUSTOMERS + ORDERS


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("several")
    for name, frame in shop(300).items():
        frame.drop(columns="age", errors="ignore").to_csv(folder / f"{name}.csv", index=False)
    with served(folder, DECLARATION) as found:
        yield found


def test_the_release_is_the_same_here_and_there(service: Served) -> None:
    with service.connect("ana") as there:
        first = there.publish(NAMES, epsilon=2, request="both")
        again = there.publish(tuple(NAMES), epsilon="2", request="both")
    local = service.curator.publish(NAMES, epsilon=2, analyst="ana")
    assert isinstance(first, SyntheticTables)
    assert first.charged.epsilon == 2
    assert not local.charged
    assert first.to_dict() == again.to_dict()
    assert first.holds == local.holds
    assert {name: one.rows for name, one in first.tables.items()} == {n: one.rows for n, one in local.tables.items()}
    joined = "SELECT COUNT(*) AS n FROM orders JOIN customers ON orders.customer = customers.id WHERE sex = 'F'"
    assert first.ask(joined).rows == local.ask(joined).rows


def test_what_a_job_says_and_in_which_forms_it_is_read(service: Served) -> None:
    begun = service.call("POST", "/publish", "ana", {"table": NAMES, "epsilon": "2"}, Idempotency_Key="forms")
    job = begun.json["job"]
    service.call("GET", f"/jobs/{job}/events", "ana")
    assert service.call("GET", f"/jobs/{job}", "ana").json["table"] == "customers, orders"
    answer = service.call("GET", f"/jobs/{job}/answer", "ana")
    tables = answer.json["tables"]
    assert set(tables) == set(NAMES)
    assert {row["customer"] for row in tables["orders"]["rows"]} <= {row["id"] for row in tables["customers"]["rows"]}
    for form in (CSV, ARROW):
        refused = service.call("GET", f"/jobs/{job}/answer", "ana", Accept=form)
        assert (refused.status, refused.json["code"]) == (422, "output")
    listed = service.call("GET", "/console/publish", "ana", Accept="application/json").json["published"]
    assert {"customers, orders"} == {one["table"] for one in listed}
    assert service.call("GET", f"/jobs/{job}/answer", "bob").status == 404


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (422, "table", {"table": ["customers"]}),
        (422, "table", {"table": []}),
        (422, "table", {"table": ["customers", "customers"]}),
        (422, "table", {"table": ["customers", "nothing"]}),
        (422, "table", {"table": ["customers", 3]}),
        (422, "table", {"table": ["customers", ["orders"]]}),
        (422, "table", {"table": NAMES, "rows": 5}),
        (422, "table", {"table": NAMES, "columns": ["sex"]}),
        (422, "table", {"table": NAMES, "method": "mst"}),
        (422, "price", {"table": NAMES, "epsilon": "-1"}),
        (400, "body", {"table": {"customers": "orders"}}),
        (400, "body", {"table": 5}),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_spent(service: Served, status: int, code: str, said: Any) -> None:
    head = service.curator.ledger.verify().head
    found = service.call("POST", "/publish", "ana", {"epsilon": "1", **said})
    assert (found.status, found.json["code"]) == (status, code)
    assert service.curator.ledger.verify().head == head


def test_more_than_an_analyst_has_is_refused(service: Served) -> None:
    with service.connect("bob") as there, pytest.raises(discreet.BudgetError):
        there.publish(NAMES, epsilon=1)


@pytest.mark.parametrize("names", [{"customers", "orders"}, 5, None, b"customers"])
def test_what_is_no_table_is_refused_as_here(service: Served, names: Any) -> None:
    with service.connect("ana") as there, pytest.raises(QuestionError, match="table"):
        there.publish(names, epsilon=1)


def test_of_a_single_table_alone(service: Served) -> None:
    with service.connect("ana") as there, pytest.raises(QuestionError, match="of a single table"):
        there.publish(NAMES, epsilon=1, rows=5)  # type: ignore[call-overload]


@pytest.mark.parametrize("names", [NAMES, ["Customers", "ORDERS"], "ORDERS"])
def test_what_was_made_of_a_frozen_table_is_not_given_again(service: Served, names: Any) -> None:
    """However its name is written, and in every form."""
    begun = service.call("POST", "/publish", "ana", {"table": names, "epsilon": "2"}, Idempotency_Key="".join(names))
    job = begun.json["job"]
    service.call("GET", f"/jobs/{job}/events", "ana")
    told = service.call("GET", f"/jobs/{job}", "ana").json["table"]
    assert told == ("orders" if names == "ORDERS" else "customers, orders")
    paths = [f"/jobs/{job}/answer", f"/jobs/{job}/answer?rows=packed", f"/console/publish/{job}/csv"]
    service.curator.freeze(tables=["orders"], reason="a test")
    try:
        for path in paths:
            assert service.call("GET", path, "ana", Accept="application/json").status == 403
    finally:
        service.curator.lift(tables=["orders"], reason="a test")
    assert service.call("GET", paths[0], "ana").status == 200


def test_a_release_that_ended_early_is_frozen_with_all_that_was_named(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the tables that were begun; how many rows below they have was measured too."""

    def ends(*_: object) -> None:
        raise InterruptedError

    with monkeypatch.context() as ended:
        ended.setattr(Jobs, "_hear", ends)
        begun = service.call("POST", "/publish", "ana", {"table": NAMES, "epsilon": "1"}, Idempotency_Key="early")
        job = begun.json["job"]
        service.call("GET", f"/jobs/{job}/events", "ana")
    assert "orders" not in service.call("GET", f"/jobs/{job}/answer", "ana").json["tables"]
    service.curator.freeze(tables=["orders"], reason="a test")
    try:
        assert service.call("GET", f"/jobs/{job}/answer", "ana").status == 403
    finally:
        service.curator.lift(tables=["orders"], reason="a test")


def test_tables_of_which_one_is_frozen_are_not_published(service: Served) -> None:
    with service.connect("ana") as there:
        there.publish(NAMES, epsilon=2, request="frozen")
        service.curator.freeze(tables=["orders"], reason="a test")
        try:
            with pytest.raises(EngineError):
                there.publish(NAMES, epsilon=2, request="frozen")
        finally:
            service.curator.lift(tables=["orders"], reason="a test")
        assert there.publish(NAMES, epsilon=2, request="frozen").charged.epsilon in (0, 2)


def test_the_command(service: Served, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text(service.tokens["ana"], "utf-8")
    asked = ["publish", *NAMES, "--server", service.url, "--token-file", "token", "--epsilon", "2", "-o", "made.csv"]
    found = CliRunner().invoke(main, asked)
    assert found.exit_code == 0, found.output
    assert "rows of orders are in made_orders.csv" in found.output
    assert {one.name for one in tmp_path.glob("made_*.csv")} == {"made_customers.csv", "made_orders.csv"}


SEXES = 'totals = [{ by = ["sex"], counts = { F = 90, M = 70, "(none)" = 2 } }]'
CHANNELS = """totals = [{ by = ["channel"], counts = { web = 0, "Laden ü" = 300, "(none)" = 1 } }]
sums = { all = ["one", "two"] }"""
NUMBERS = """one = { type = "integer", min = 0, max = 9 }
two = { type = "integer", min = 0, max = 9 }
all = { type = "integer" }
channel ="""
OFFICIAL = (
    DECLARATION.replace("one_row_per_person = true", f"one_row_per_person = true\n{SEXES}")
    .replace("rows_per_person = 6", f"rows_per_person = 6\n{CHANNELS}")
    .replace("channel =", NUMBERS)
)


def test_totals_and_sums_hold_over_http_and_at_a_terminal(tmp_path: Path) -> None:
    for name, frame in shop(300).items():
        more = {"one": 1, "two": 2, "all": 3} if name == "orders" else {}
        frame.assign(**more).to_csv(tmp_path / f"{name}.csv", index=False)
    with served(tmp_path, OFFICIAL) as found, found.connect("ana") as there:
        _official(there.publish(NAMES, epsilon=2))
        (_, orders) = related_tables(found.curator, NAMES)
        assert orders["columns"] == ["number", "one", "two", "channel", "all"]
        owner = Account("owner", Role.OWNER)
        told = foreseen(found.curator, owner, {"table": NAMES, "epsilon": "1"})["tables"][1]
        assert told["columns"] == orders["columns"]
    written = CliRunner().invoke(
        main,
        [
            "publish",
            str(tmp_path / "clinic.toml"),
            *NAMES,
            "--epsilon=1",
            "--analyst=ana",
            f"--output={tmp_path / 'made.json'}",
        ],
    )
    assert written.exit_code == 0, written.output
    _official(discreet.published(tmp_path / "made.json"))


def _official(release: Any) -> None:
    customers, orders = (release.tables[name].rows for name in NAMES)
    assert Counter(row["sex"] for row in customers) == {"F": 90, "M": 70, None: 2}
    assert Counter(row["channel"] for row in orders) == {"Laden ü": 300, None: 1}
    assert max(Counter(row["customer"] for row in orders).values()) <= 6
    for row in orders:
        assert row["all"] == (None if None in (row["one"], row["two"]) else row["one"] + row["two"])
