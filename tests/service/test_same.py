"""The same question here and there: a release from a service is the local one's, to the letter, in JSON that every
reader takes; and what a curator warns of is heard by whoever asks."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

import discreet
from discreet.errors import EngineError
from face_tools import CLINIC, Data, strict
from service_tools import Served, served

BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT city, COUNT(*) AS n, AVG(age) AS a, SUM(cost) AS s FROM visits GROUP BY city",
    "SELECT city, STDDEV(cost) AS v, VARIANCE(age) AS w FROM visits GROUP BY city",
    "SELECT MEDIAN(age) AS m, MIN(age) AS l, MAX(cost) AS h FROM visits",
    "SELECT QUANTILE_CONT(cost, [0.1, 0.5]) AS q FROM visits",
    "SELECT COUNT(DISTINCT person) AS n FROM visits WHERE smoker",
    "SELECT smoker, COUNT(*) AS n FROM visits GROUP BY smoker HAVING n > 5 ORDER BY n DESC LIMIT 2",
    "SELECT SUM(age) / SUM(cost) AS r, CORR(age, cost) AS c FROM visits",
    "SELECT city, COUNT(*) / (SUM(age) - SUM(cost)) AS r, EXP(COUNT(*)) AS e FROM visits GROUP BY city",
    "SELECT 1e308 * SUM(age) * SUM(cost) AS x, POWER(COUNT(*), 500) AS p FROM visits",
    f"SELECT MAX(n) AS x, EXP(SUM(n)) AS y, SUM(n) / MIN(n - n) AS z FROM ({BY_CITY}) AS t",
    f"SELECT city, n, RANK() OVER (ORDER BY n) AS r, SUM(n) OVER () * 1e300 AS s FROM ({BY_CITY}) AS t",
    f"SELECT city || '\u2028 <b>' AS c, n FROM ({BY_CITY}) AS t ORDER BY n",
    "SELECT CAST(cost / 10 AS INTEGER) AS bin, COUNT(*) AS n FROM visits GROUP BY bin",
]


@pytest.fixture(scope="module")
def service(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("same")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder, CLINIC.replace("epsilon = 1.0", "epsilon = 1000")) as found:
        yield found


@pytest.mark.parametrize(("question", "epsilon"), list(zip(QUESTIONS, itertools.cycle(["0.01", "20"]), strict=False)))
def test_an_answer_is_the_same(service: Served, question: str, epsilon: str) -> None:
    delta = "1e-9" if "bin" in question or "smoker" in question else None
    with service.connect("ana") as there:
        there.ask(question, epsilon=epsilon, delta=delta)
        again = there.ask(question, epsilon=epsilon, delta=delta)
        local = service.curator.ask(question, epsilon=epsilon, delta=delta, analyst="ana")
        assert again.to_dict() == local.to_dict()
        assert again.to_json() == local.to_json()
        assert strict(again.to_json())["charged"] == {"epsilon": 0, "delta": 0}
        assert again.notes == local.notes
        assert repr(again) == repr(local)
        assert again._repr_html_() == local._repr_html_()
        assert again.to_columns() == local.to_columns()
        told = there.explain(question, epsilon=epsilon, delta=delta)
        mine = service.curator.explain(question, epsilon=epsilon, delta=delta, analyst="ana")
        assert told.to_dict() == mine.to_dict()
        assert repr(told) == repr(mine)
    if question == QUESTIONS[1] and find_spec("pandas"):
        assert again.to_pandas().equals(local.to_pandas())


def test_a_warning_is_heard_by_whoever_asks_and_by_nobody_else(
    service: Served, caplog: pytest.LogCaptureFixture
) -> None:
    question, within = "SELECT AVG(age) AS secret FROM visits", {"secret": "2"}
    service.curator.ask(question, within=within)
    (mine,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    caplog.clear()
    body = {"question": question, "within": within}
    assert service.call("POST", "/ask", "ana", body).json["warnings"] == [mine]
    assert "secret" not in caplog.text  # the service logs nothing of a question
    with service.connect("ana") as there:
        there.ask(question, within=within)
        there.ask(question, epsilon="0.5")
    assert [one.getMessage() for one in caplog.records if one.levelname == "WARNING"] == [mine]


def test_what_is_measured_afresh_is_charged(service: Served) -> None:
    more = "SELECT city, COUNT(*) AS n, SUM(age) AS s FROM visits WHERE age > 20 GROUP BY city"
    count = "SELECT city, COUNT(*) AS n FROM visits WHERE age > 20 GROUP BY city"
    with service.connect("ana") as there:
        there.ask(more, "20")
        assert there.explain(count, "0.01").earlier == 1
        assert not there.ask(count, "0.01").charged
        assert there.explain(count, "0.01", reuse=False).earlier == 0
        afresh = there.ask(count, "0.01", reuse=False)
        assert afresh.charged["epsilon"] == 0.01
        assert not there.ask(count, "0.01", reuse=False).charged
    body = {"question": count, "epsilon": "0.02", "reuse": False}
    assert service.call("POST", "/ask", "ana", body).json["charged"]["epsilon"] == 0.02
    assert service.call("POST", "/ask", "ana", {**body, "reuse": "no"}).status == 400


ANSWERS: dict[str, object] = {"nothing": {}, "other": {"warnings": 3, "rows": [], "total": "\x1b[2J", "tables": 1}}


@pytest.mark.parametrize("said", ANSWERS)
def test_another_program_than_a_service_is_told_from_one(said: str) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(ANSWERS[said]).encode()
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        with discreet.connect(f"http://127.0.0.1:{other.server_port}", token="discreet_any") as there:
            calls = (there.ask, there.explain, there.check_question, lambda _: there.budget)
            for call in calls:
                with pytest.raises(EngineError, match="no answer of a service"):
                    call("SELECT COUNT(*) AS n FROM t")
        other.shutdown()
