"""The form over HTTP: who is let in, what is written, and what comes of everything else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from beginning_tools import HOSTILE, PATIENTS, VISITS, Form, form
from discreet.beginning.draft import MOST_ANALYSTS
from discreet.catalog import read
from discreet.catalog.suggest import write_new
from discreet.errors import DeclarationError

GOOD = {
    "epsilon": "1",
    "delta": "1e-6",
    "analysts": "1",
    "t0.about": "one",
    "t0.dates": "%d.%m.%Y",
    "t0.c1.keep": "on",
    "t0.c1.type": "text",
    "t0.c1.values": "F\r\nM",
}


@pytest.fixture
def one(tmp_path: Path) -> object:
    with form(tmp_path, {"patients.csv": PATIENTS}) as found:
        yield found


def test_what_is_not_there_is_said_as_a_page(one: Form) -> None:
    assert one.call("GET", one.path).status == 403
    one.open()
    for path in ("x", "check", "static/app.py", "static/../app.py", "a/b"):
        reply = one.call("GET", one.path + path)
        assert reply.status in (404, 405), path
        assert "default-src 'none'" in reply.headers["content-security-policy"]
    reply = one.call("GET", f"{one.path}static/style.css")
    assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")


def test_only_the_forms_own_page_can_send_it(one: Form, tmp_path: Path) -> None:
    one.open()
    port = one.origin.rpartition(":")[2]
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Cookie": ""},
    ):
        assert one.send(GOOD, **headers).status == 403, headers
    word, one.word = one.word, "another"
    assert one.send(GOOD).status == 403
    one.word = word
    assert one.send(GOOD, Host=f"evil.example:{port}").status == 421
    assert one.call("POST", one.path, b"{}", Content_Type="text/plain").status == 415
    assert one.send({**GOOD, "path": "/etc/passwd"}).status == 400
    assert one.call("POST", one.path, b"form=a&form=b").status == 400
    assert one.call("POST", one.path, b"&".join(b"x%d=1" % n for n in range(5_000))).status == 400
    assert one.call("POST", one.path, b"a=" + b"x" * (2 << 20)).status == 413
    assert one.call("PUT", one.path, b"").status in (404, 405)
    assert not (tmp_path / "clinic.toml").exists()
    assert one.beginning.written is None


def test_what_is_wrong_stands_beside_its_field_without_a_script(one: Form) -> None:
    page = one.open()
    assert not [value for value in ("Roe", "777", "1980") if value in page]
    reply = one.send({**GOOD, "t0.about": "", "epsilon": "<b>", "t0.c2.keep": "on"})
    text = reply.content.decode()
    assert reply.status == 400
    assert "Nothing is written yet" in text
    assert 'id="t0.about-fault">It is not said' in text
    assert 'id="epsilon-fault">Not a valid number' in text
    assert 'id="t0.c2.type-fault">Its type is not chosen' in text
    assert 'value="&lt;b&gt;"' in text
    assert "<b>" not in text.partition('name="epsilon"')[2][:40]
    assert "F\nM</textarea>" in text
    looked = one.send({**GOOD, "t0.about": ""}, "check")
    assert looked.status == 200
    assert 'id="t0.about-fault" hidden' in looked.content.decode()  # it is only not said yet
    more = one.send({**GOOD, "a0.name": "ana"}, "more").content.decode()
    assert 'name="a1.name"' in more
    assert 'value="ana"' in more
    many = one.send({**GOOD, "analysts": "99999999"}, "more").content.decode()
    assert f'name="a{MOST_ANALYSTS}.name"' not in many


def test_it_writes_one_file_and_never_over_another(one: Form, tmp_path: Path) -> None:
    one.open()
    target = tmp_path / "clinic.toml"
    target.write_text("somebody's", "utf-8")
    refused = one.send(GOOD)
    assert refused.status == 409
    assert b"This file exists" in refused.content
    assert target.read_text("utf-8") == "somebody's"
    target.unlink()
    target.symlink_to(tmp_path / "elsewhere")
    assert one.send(GOOD).status == 409
    target.unlink()
    (tmp_path / "patients.csv").unlink()  # what is declared is said; `discreet check` looks for the file
    shown = json.loads(one.send(GOOD, at="check", Accept="application/json").content)
    assert shown["lacks"] == []
    reply = one.send(GOOD)
    assert reply.status == 200
    assert b"discreet serve" in reply.content
    assert b"is written" in one.send(GOOD, "cancel").content  # what is done stays so
    one.running.join()
    assert target.read_text("utf-8") == shown["text"]
    (tmp_path / "x").touch()
    assert target.stat().st_mode == (tmp_path / "x").stat().st_mode
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clinic.toml", "x"]
    assert list(read(target).tables) == ["patients"]


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with form(tmp_path, {"patients.csv": PATIENTS}, "there/clinic.toml") as one:
        one.open()
        (tmp_path / "there").rmdir()
        refused = one.send(GOOD)
        assert (refused.status, b"There is no such folder" in refused.content) == (409, True)
        (tmp_path / "there").mkdir()
        assert one.send(GOOD).status == 200


def test_a_table_of_many_columns_can_be_sent(tmp_path: Path) -> None:
    with form(tmp_path, {"wide.csv": ",".join(f"c{n}" for n in range(3_000)) + "\n"}) as one:
        one.cookie = one.call("GET", urlsplit(one.url).path).headers["set-cookie"].partition(";")[0]
        said = {f"t0.c{n}.values": "x" * 400 for n in range(3_000)}
        assert one.send(said).status == 403  # it is read, and has not the word of the page


def test_a_first_line_of_values_is_pointed_at(tmp_path: Path) -> None:
    with form(tmp_path, {"people.csv": "17,2020-01-31\n18,2020-01-31\n"}) as one:
        assert "read as column names, but looks like values" in one.open()


def test_where_files_have_no_second_names_it_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.link", none)
    write_new(tmp_path / "a.toml", "x = 1\n")
    with pytest.raises(DeclarationError, match="this file exists"):
        write_new(tmp_path / "a.toml", "x = 2\n")
    assert [(path.name, path.read_text("utf-8")) for path in tmp_path.iterdir()] == [("a.toml", "x = 1\n")]


def test_cancel_writes_nothing(one: Form, tmp_path: Path) -> None:
    one.open()
    assert b"Nothing was written" in one.send({}, "cancel").content
    one.running.join()
    assert [path.name for path in tmp_path.iterdir()] == ["patients.csv"]
    assert one.beginning.written is False


def test_names_and_values_are_only_texts(tmp_path: Path) -> None:
    with form(tmp_path, {"visits.csv": VISITS}) as one:
        page = one.open()
        assert HOSTILE not in page
        assert "&lt;script&gt;" in page
        value = '"]\n[budget]\nepsilon = 9\n\u202e' + HOSTILE
        said = {**GOOD, "t0.c3.keep": "on", "t0.c3.type": "text", "t0.c3.values": value, "t0.c3.min": "a = 1"}
        said |= {"a0.name": 'x]\nepsilon = 9 "', "a0.epsilon": "1"}
        assert one.send(said).status == 400
        said |= {"a0.name": '"x] \\'}
        looked = one.send(said, "check").content.decode()
        assert HOSTILE not in looked
        assert "\u202e" not in looked
        assert one.send(said).status == 200
    declared = read(tmp_path / "clinic.toml")
    assert declared.budget.epsilon == 1
    assert list(declared.analysts) == ['"x] \\']
    assert declared.tables["visits"].column(HOSTILE).values == (
        '"]',
        "[budget]",
        "epsilon = 9",
        "\u202e" + HOSTILE,
    )


def test_the_command_says_the_address_and_writes_nothing_when_it_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text(PATIENTS, "utf-8")
    command = [sys.executable, "-m", "discreet", "init", "patients.csv", "--browser"]
    other = subprocess.run([*command, "--public", "GENDER"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert other.returncode == 2
    assert "--browser goes with" in other.stderr
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = [process.stderr.readline(), process.stderr.readline()]
        assert "Ctrl-C" in said[0]
        assert said[1].startswith("http://127.0.0.1:")
        assert len(said[1].strip().rpartition("/")[2]) == 43  # 256 bits
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (1, "", "nothing was written\n")
    assert [path.name for path in tmp_path.iterdir()] == ["patients.csv"]
