"""From one version to the next: a service is stopped, the program is upgraded, and the service started again."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from discreet.errors import LedgerError
from discreet.trusted.ledger import schema
from face_tools import Data
from service_tools import served

COUNT = {"question": "SELECT city, COUNT(*) AS n FROM visits GROUP BY city", "epsilon": "0.1"}
MORE = {"question": "SELECT COUNT(*) AS n FROM visits WHERE age > 3", "epsilon": "0.1"}


def test_nothing_is_lost_and_an_older_program_goes_no_further(
    data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a made-up next version."""
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path) as old:
        tokens = old.tokens
        answer = old.call("POST", "/ask", "ana", COUNT, Idempotency_Key="first").json
        balance = old.call("GET", "/balance", "ana").json
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with served(tmp_path, tokens=tokens) as new:
        for headers in ({"Idempotency_Key": "first"}, {}):
            again = new.call("POST", "/ask", "ana", COUNT, **headers).json
            assert (again["rows"], again["charged"]["epsilon"]) == (answer["rows"], 0)
        assert new.call("GET", "/balance", "ana").json == balance
        assert new.call("POST", "/ask", "ana", MORE).json["charged"]["epsilon"] == 0.1
        new.curator.ledger.verify()
        monkeypatch.undo()  # as if the older program still ran
        reply = new.call("POST", "/ask", "ana", {**MORE, "epsilon": "0.2"})
        assert (reply.status, reply.json["code"]) == (503, "newer")
        assert new.call("GET", "/ready", None).status == 503
    with pytest.raises(LedgerError, match="a newer version") as caught, served(tmp_path, tokens=tokens):
        pass
    assert caught.value.fix == "upgrade discreet"


def test_accounts_of_a_newer_version_let_nobody_in(data: Data, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path) as service:
        assert service.call("GET", "/balance", "ana").status == 200
        file = apsw.Connection(str(tmp_path / "clinic.accounts"))
        (version,) = file.execute("PRAGMA user_version").fetchone() or (0,)
        file.execute(f"PRAGMA user_version = {int(version) + 1}")
        file.close()
        assert service.call("GET", "/balance", "ana").status == 503
