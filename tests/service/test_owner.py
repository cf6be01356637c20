"""What an owner does from another machine: each act is kept with who did it and why, and a retry does it once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.errors import EngineError, LedgerError
from discreet.service.accounts import Account
from discreet.service.roles import Role
from face_tools import Data
from service_tools import CLINIC, Served, served

COUNT = {"question": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1"}
WHY = {"reason": "she is on leave"}


@pytest.fixture
def service(data: Data, tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def unchanged(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for all that changes nothing."""
    folder = tmp_path_factory.mktemp("unchanged")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder) as found:
        yield found


def notes(service: Served) -> list[str]:
    return [entry.note for entry in service.curator.ledger.entries()]


def refreshed(service: Served) -> Any:
    while (found := service.call("GET", "/refresh", "owner").json)["state"] == "running":
        time.sleep(0.05)
    return found


def test_an_analyst_who_is_frozen_asks_nothing_and_others_do(service: Served) -> None:
    asked = service.call("POST", "/ask", "ana", COUNT)
    assert asked.status == 200
    frozen = service.call("POST", "/freeze", "owner", {"analyst": "ana", **WHY})
    assert (frozen.status, frozen.json) == (200, {"analyst": "ana", "frozen": True, "new": True, "tables": []})
    again = service.call("POST", "/freeze", "owner", {"analyst": "ana", **WHY})
    assert again.json["new"] is False
    head = service.curator.ledger.head
    for said in (COUNT, {**COUNT, "epsilon": "0.2"}):  # what is stored, too
        refused = service.call("POST", "/ask", "ana", said)
        assert (refused.status, refused.json["code"]) == (403, "stopped")
    assert service.curator.ledger.head == head
    assert service.call("POST", "/explain", "ana", COUNT).status == 200
    assert service.call("POST", "/ask", "bob", COUNT).status == 200
    assert service.call("POST", "/ask", "owner", COUNT).status == 200
    lifted = service.call("POST", "/lift", "owner", {"analyst": "ana", "reason": "back"})
    assert lifted.json == {"analyst": "ana", "frozen": False, "tables": []}
    assert service.call("POST", "/ask", "ana", COUNT).status == 200
    assert [note for note in notes(service) if "frozen" in note] == [
        "ana frozen, by owner: she is on leave",
        "ana no longer frozen, by owner: back",
    ]
    service.curator.ledger.verify()


def test_everybody_is_frozen_and_a_restart_changes_nothing(service: Served, tmp_path: Path) -> None:
    assert service.call("POST", "/freeze", "owner", WHY).json["analyst"] is None
    for who in ("ana", "bob", "owner"):
        assert service.call("POST", "/ask", who, COUNT).json["code"] == "stopped"
    with discreet.open(tmp_path / "clinic.toml") as other, pytest.raises(EngineError, match="frozen all questions"):
        other.ask(COUNT["question"], epsilon=0.1, analyst="ana")
    found = service.call("GET", "/analysts", "owner").json
    assert found["frozen"] is True
    service.call("POST", "/lift", "owner", {"reason": "over"})
    assert service.call("POST", "/ask", "ana", COUNT).status == 200


def test_each_analyst_with_caps_and_accounts(service: Served) -> None:
    service.call("POST", "/ask", "ana", COUNT)
    service.call("POST", "/freeze", "owner", {"analyst": "bob", **WHY})
    found = service.call("GET", "/analysts", "owner").json
    ana, bob = found["analysts"]
    assert (ana["analyst"], ana["accounts"], ana["today"], ana["frozen"]) == ("ana", ["ana"], 1, False)
    assert ana["budget"]["total"]["epsilon"] == "4"
    assert ana["pace"]["days"] == 7
    assert (bob["frozen"], bob["today"], bob["pace"]["words"]) == (True, 0, "nothing was charged in the last 28 days")
    assert {one["account"]: one["role"] for one in found["accounts"]}["eve"] == "auditor"
    assert "secret" not in str(found)
    balance = service.call("GET", "/balance", "owner").json
    assert balance["pace"]["words"].startswith("as in the last 7 days")
    assert "pace" not in service.call("GET", "/balance", "ana").json
    with service.connect("owner") as far:
        assert far.budget.total["epsilon"] == "10"


def test_a_refresh_is_done_once_and_says_what_changed(service: Served, data: Data, tmp_path: Path) -> None:
    assert service.call("GET", "/refresh", "owner").json == {"state": "none", "snapshots": {"visits": 1}}
    lines = data.csv.read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "visits.csv").write_text("".join(lines[:-20]), "utf-8")
    said = {"tables": {"visits": 1}, "reason": "the data of May"}
    begun = service.call("POST", "/refresh", "owner", said)
    assert begun.status == 202
    found = refreshed(service)
    assert (found["state"], found["changed"], found["snapshots"]) == ("done", ["visits"], {"visits": 2})
    assert found["done"]["visits"].startswith("snapshot 2, changed")
    assert (found["by"], found["reason"]) == ("owner", "the data of May")
    again = service.call("POST", "/refresh", "owner", said)
    assert (again.status, again.json["code"]) == (422, "snapshot")
    assert refreshed(service)["snapshots"] == {"visits": 2}
    assert service.call("POST", "/ask", "ana", COUNT).status == 200
    assert "new snapshots asked for: visits, by owner: the data of May" in notes(service)


def test_of_two_refreshes_at_once_one_is_done(service: Served) -> None:
    said = {"tables": {"visits": 1}, "reason": "twice"}
    replies: list[int] = []
    threads = [
        threading.Thread(target=lambda: replies.append(service.call("POST", "/refresh", "owner", said).status))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(replies) == [202, 422, 422, 422]
    assert refreshed(service)["snapshots"] == {"visits": 2}


def test_a_refresh_that_fails_says_why_and_leaves_what_was(service: Served, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").unlink()
    service.call("POST", "/refresh", "owner", {"tables": {"VISITS": 1}, "reason": "gone"})
    found = refreshed(service)
    assert (found["state"], found["snapshots"]) == ("failed", {"visits": 1})
    assert found["problem"]["type"] == "urn:discreet:DeclarationError"


def test_an_account_is_made_with_a_token_and_ended(service: Served) -> None:
    made = service.call(
        "POST", "/accounts", "owner", {"account": "ana@example.org", "analyst": "ana", "days": 3, **WHY}
    )
    assert made.status == 201
    secret = made.json["secret"]
    assert service.call("GET", "/balance", secret).json["analyst"] == "ana"
    assert made.json["token"]["expires"] is not None
    again = service.call("POST", "/accounts", "owner", {"account": "ana@example.org", "analyst": "ana", **WHY})
    assert (again.status, "POST /accounts/NAME/token" in again.json["fix"]) == (422, True)
    ended = service.call("POST", "/accounts/ana@example.org/end", "owner", {"reason": "has left"})
    assert ended.json == {"account": "ana@example.org", "ended": True, "revoked": [made.json["token"]["token"]]}
    assert service.call("GET", "/balance", secret).status == 401
    assert "by owner: has left" in notes(service)[-1]
    assert secret not in str(list(service.curator.ledger.entries()))
    service.accounts.hold_against(service.curator.ledger.acts())


def test_a_new_token_revokes_no_other(service: Served) -> None:
    made = service.call("POST", "/accounts/ana/token", "owner", {"days": 3, "reason": "the first was lost"})
    assert (made.status, made.json["account"], made.json["role"]) == (201, "ana", "analyst")
    assert made.json["token"]["expires"] is not None
    for token in (made.json["secret"], "ana"):
        assert service.call("GET", "/balance", token).json["analyst"] == "ana"
    note = notes(service)[-1]
    assert note.startswith(f"token {made.json['token']['token']} made for ana, until ")
    assert note.endswith(", by owner: the first was lost")
    service.accounts.hold_against(service.curator.ledger.acts())


def test_a_single_token_is_revoked_and_the_others_hold(service: Served) -> None:
    made = service.call("POST", "/accounts/ana/token", "owner", WHY).json
    number, secret = made["token"]["token"], made["secret"]
    assert service.call("GET", "/balance", secret).status == 200
    for revoked in ([number], []):  # sent twice, it is one act
        found = service.call("POST", "/accounts/ana/revoke", "owner", {"token": number, "reason": "lost"})
        assert (found.status, found.json) == (200, {"account": "ana", "revoked": revoked})
    assert [service.call("GET", "/balance", token).status for token in (secret, "ana")] == [401, 200]
    assert [note for note in notes(service) if "revoked" in note] == [f"revoked of ana: token {number}, by owner: lost"]
    known = service.call("GET", "/analysts", "owner").json["accounts"]
    tokens = next(one["tokens"] for one in known if one["account"] == "ana")
    assert [(one["token"], one["holds"]) for one in tokens] == [(2, True), (number, False)]
    assert secret not in service.call("GET", "/analysts", "owner").content.decode()


def test_an_owner_revokes_a_token_of_their_own_but_for_the_last(service: Served) -> None:
    second, token = service.accounts.new_token("owner", None, service.curator.ledger.enter)
    assert service.call("POST", "/accounts/owner/revoke", "owner", {"token": token.number, **WHY}).status == 200
    assert service.call("GET", "/analysts", second).status == 401
    assert service.call("POST", "/accounts/owner/revoke", "owner", {"token": 1, **WHY}).status == 422


@pytest.mark.parametrize(
    ("path", "said", "status", "code"),
    [
        ("/freeze", {"analyst": "ana"}, 400, "body"),
        ("/freeze", {"analyst": "ana", "reason": " "}, 422, "reason"),
        ("/freeze", {"analyst": "ana", "reason": "x" * 1_001}, 422, "reason"),
        ("/freeze", {"analyst": "ana", "reason": "\ud800"}, 422, "text"),
        ("/freeze", {"analyst": "nobody", **WHY}, 422, "analyst"),
        ("/freeze", {"analyst": "", **WHY}, 422, "analyst"),
        ("/lift", {"analyst": "nobody", **WHY}, 422, "analyst"),
        ("/refresh", {"tables": {}, **WHY}, 422, "table"),
        ("/refresh", {"tables": {"nothing": 1}, **WHY}, 422, "table"),
        ("/refresh", {"tables": {"visits": 7}, **WHY}, 422, "snapshot"),
        ("/refresh", {"tables": {"visits": 1.5}, **WHY}, 400, "body"),
        ("/refresh", {"tables": {"visits": "1"}, **WHY}, 400, "body"),
        ("/accounts", {"account": "o2", "role": "owner", **WHY}, 422, "account"),
        ("/accounts", {"account": "a b", "role": "auditor", **WHY}, 422, "account"),
        ("/accounts", {"account": "x", "role": "analyst", **WHY}, 422, "account"),
        ("/accounts", {"account": "x", "role": "auditor", "days": 0, **WHY}, 422, "account"),
        ("/accounts", {"account": "x", "role": "auditor", "reason": " "}, 422, "reason"),
        ("/accounts", {"account": "x", "role": "auditor"}, 400, "body"),
        ("/accounts/owner/token", WHY, 422, "account"),
        ("/accounts/nobody/token", WHY, 422, "account"),
        ("/accounts/ana/token", {"days": 0, **WHY}, 422, "account"),
        ("/accounts/ana/token", {"reason": ""}, 422, "reason"),
        ("/accounts/ana/token", {}, 400, "body"),
        ("/accounts/owner/end", WHY, 422, "account"),
        ("/accounts/nobody/end", WHY, 422, "account"),
        ("/accounts/ana/end", {"reason": ""}, 422, "reason"),
        ("/accounts/ana/revoke", WHY, 400, "body"),
        ("/accounts/ana/revoke", {"token": 2}, 400, "body"),
        ("/accounts/ana/revoke", {"token": 2, "reason": ""}, 422, "reason"),
        ("/accounts/ana/revoke", {"token": 1, **WHY}, 422, "account"),  # the owner's
        ("/accounts/ana/revoke", {"token": 1.5, **WHY}, 422, "account"),
        ("/accounts/nobody/revoke", {"token": 2, **WHY}, 422, "account"),
        ("/accounts/owner/revoke", {"token": 1, **WHY}, 422, "account"),  # nobody could ask with it any more
    ],
)
def test_what_is_refused_changes_nothing(unchanged: Served, path: str, said: Any, status: int, code: str) -> None:
    head, known = unchanged.curator.ledger.head, unchanged.accounts.known()
    found = unchanged.call("POST", path, "owner", said)
    assert (found.status, found.json["code"]) == (status, code)
    assert (unchanged.curator.ledger.head, unchanged.accounts.known()) == (head, known)


def test_nobody_else_does_or_sees_it(unchanged: Served) -> None:
    head = unchanged.curator.ledger.head
    for who in ("ana", "eve", "max"):
        for method, path in (
            ("GET", "/analysts"),
            ("GET", "/refresh"),
            ("POST", "/freeze"),
            ("POST", "/accounts"),
            ("POST", "/accounts/ana/token"),
            ("POST", "/accounts/ana/revoke"),
        ):
            assert unchanged.call(method, path, who, WHY if method == "POST" else None).status == 403
    assert unchanged.curator.ledger.head == head


def test_workers_hear_of_a_freeze(data: Data, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    text = CLINIC.replace("[budget]", '[engine]\nstore = "file"\n\n[budget]')
    with served(tmp_path, text, workers=2) as service:
        assert service.call("POST", "/ask", "ana", COUNT).status == 200
        service.call("POST", "/freeze", "owner", {"analyst": "ana", **WHY})
        assert service.call("POST", "/ask", "ana", {**COUNT, "epsilon": "0.2"}).json["code"] == "stopped"
        service.call("POST", "/refresh", "owner", {"tables": {"visits": 1}, "reason": "now"})
        assert refreshed(service)["snapshots"] == {"visits": 2}
        assert service.call("POST", "/ask", "bob", COUNT).status == 200


def test_where_no_analysts_are_declared_those_with_accounts_are_known(data: Data, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path, CLINIC.partition("[analysts")[0]) as service:
        assert [one["analyst"] for one in service.call("GET", "/analysts", "owner").json["analysts"]] == ["ana", "bob"]
        assert service.call("POST", "/freeze", "owner", {"analyst": "ana", **WHY}).status == 200
        assert service.call("POST", "/ask", "ana", COUNT).json["code"] == "stopped"
        service.accounts.end("ana", service.curator.ledger.enter)
        service.accounts.add(Account("zoe", Role.ANALYST), service.curator.ledger.enter)
        assert service.call("POST", "/lift", "owner", {"analyst": "ana", **WHY}).status == 200


def test_an_act_waits_for_no_ledger_that_is_gone(service: Served, tmp_path: Path) -> None:
    (tmp_path / "clinic.ledger").rename(tmp_path / "away")
    try:
        assert service.call("POST", "/freeze", "owner", WHY).status == 503
        with pytest.raises(LedgerError):
            service.curator.freeze(reason="x")
    finally:
        (tmp_path / "away").rename(tmp_path / "clinic.ledger")
