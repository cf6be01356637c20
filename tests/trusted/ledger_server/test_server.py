"""A ledger on a server: what others may do there, what the server may do, and machines that know nothing of another."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

import discreet
import storms
from discreet.errors import EngineError, LedgerError
from discreet.ledger import TOTAL, Ledger, Reserved
from discreet.trusted.ledger import note
from discreet.trusted.ledger_server import tables
from discreet.trusted.ledger_server.server import LedgerServer
from kinds import some
from ledger_places import KEEPER, Server, ledger_server
from postgres_tools import PORT, Postgres
from storms import PRICE, Spot, caps, make


def code(at: Spot, *, lost: bool = False) -> str:
    with pytest.raises(LedgerError) as refused:
        Ledger(at, lost=lost).verify()
    assert refused.value.where == at.name
    assert refused.value.fix
    return refused.value.code


def spent(ledger: Ledger) -> int:
    return int((ledger.filter(TOTAL).spent.pure or 0) / PRICE.epsilon)


def elsewhere(at: Spot, folder: Path, *, knows: bool = True) -> Spot:
    """The same ledger as another machine has it, which `knows` what this one has noted so far."""
    folder.mkdir(exist_ok=True)
    other = Spot(at.server, at.schema, folder / "a.ledger")
    if knows:
        shutil.copy(note.place(at.beside), note.place(other.beside))
    return other


def quoted(at: Spot, statement: str) -> str:
    """A statement with the place's schema for `here`."""
    return statement.replace("here", f'"{at.schema}"')


@pytest.fixture
def made(at_server: Server, tmp_path: Path) -> Spot:
    at = at_server[1](tmp_path)
    make(at, 10, ana=5)
    ledger = Ledger(at)
    for turn in range(3):
        given = ledger.reserve(PRICE, question="q", key=f"{turn}", account="ana", tables=["t"], request=f"{turn}")
        ledger.commit(given.reserve_id, b"42")
    ledger.close()
    return at


# what is there


@pytest.mark.parametrize("version", some([18, 15], pytest.mark.power))
def test_what_is_made_is_what_must_be_found(version: int, tmp_path: Path) -> None:
    with ledger_server(version) as (_, place):
        with closing(Ledger(place(tmp_path))) as ledger:
            assert isinstance(ledger._file, LedgerServer)
            with ledger._file.read() as transaction:
                rows = transaction.connection.execute(tables.FACTS, (ledger._file._schema,))
                facts = {text for (text,) in rows.fetchall()}
            assert ledger._file.cautions() == []  # type: ignore[attr-defined]
        assert {"table entries", "table states", "table origin", "function"} <= facts
        assert "entries 11 answer bytea f f" in facts
        assert "CREATE UNIQUE INDEX one_commit ON entries USING btree (reserve) WHERE kind = 'commit'::text t" in facts
        assert "stay BEGIN RAISE EXCEPTION 'entries stay'; END plpgsql f t" in facts
        assert len(facts) == 33


@pytest.mark.parametrize(
    "statement", ["UPDATE here.entries SET body = ''", "DELETE FROM here.entries", "TRUNCATE here.entries"]
)
def test_entries_can_only_be_added(at_server: Server, made: Spot, statement: str) -> None:
    """By the role that writes they cannot be changed without rights that it has first to give itself; by a superuser
    not without switching off a trigger."""
    with psycopg.connect(made.server) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(quoted(made, statement))
    with psycopg.connect(at_server[0].url("owner")) as connection:
        connection.execute("SET session_replication_role = replica")
        with pytest.raises(psycopg.errors.RaiseException, match="entries stay"):
            connection.execute(quoted(made, statement))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DROP TRIGGER entries_stay ON here.entries", "corrupt"),
        ("ALTER TABLE here.entries DISABLE TRIGGER entries_stay", "corrupt"),
        (
            "CREATE OR REPLACE FUNCTION here.stay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL;END'",
            "corrupt",
        ),
        ("CREATE TRIGGER more BEFORE INSERT ON here.entries EXECUTE FUNCTION here.stay()", "corrupt"),
        ("CREATE RULE nothing AS ON INSERT TO here.entries DO INSTEAD NOTHING", "corrupt"),
        ("ALTER TABLE here.entries ENABLE ROW LEVEL SECURITY", "corrupt"),
        ("ALTER TABLE here.entries ADD COLUMN more text", "corrupt"),
        ("ALTER TABLE here.entries ALTER COLUMN hash SET DEFAULT ''", "corrupt"),
        ("ALTER TABLE here.entries SET UNLOGGED", "corrupt"),
        ("ALTER TABLE here.states SET UNLOGGED", "corrupt"),
        ("DROP INDEX here.one_commit", "corrupt"),
        ("CREATE TABLE here.more (x int8)", "corrupt"),
        ("CREATE TABLE here.more () INHERITS (here.entries)", "corrupt"),
        ("CREATE FUNCTION here.more(int8) RETURNS int8 LANGUAGE sql AS 'SELECT 1'", "corrupt"),
        ("CREATE DOMAIN here.more AS text", "corrupt"),
        ("CREATE OPERATOR here.= (FUNCTION = pg_catalog.int8eq, LEFTARG = int8, RIGHTARG = int8)", "corrupt"),
        ("GRANT INSERT ON here.entries TO reader", "corrupt"),
        ("GRANT UPDATE ON here.states TO PUBLIC", "corrupt"),
        ("GRANT UPDATE (state) ON here.states TO reader", "corrupt"),
        ("GRANT TRIGGER ON here.origin TO reader", "corrupt"),
        ("GRANT CREATE ON SCHEMA here TO reader", "corrupt"),
        ("ALTER TABLE here.entries OWNER TO reader", "corrupt"),
        ("ALTER SCHEMA here OWNER TO reader", "foreign"),
        ("UPDATE here.origin SET version = 99", "newer"),
        ("UPDATE here.origin SET server = 'elsewhere'", "rewritten"),
        ("DELETE FROM here.origin", "rewritten"),
        ("UPDATE here.states SET state = replace(state, '3/10', '1/10')", "corrupt"),
        ("DELETE FROM here.states", "corrupt"),
        ("INSERT INTO here.states VALUES ('account', 'eve', '{}')", "corrupt"),
        (
            "SET session_replication_role = origin; ALTER TABLE here.entries DISABLE TRIGGER ALL;"
            " DELETE FROM here.entries WHERE seq = (SELECT max(seq) FROM here.entries);"
            " ALTER TABLE here.entries ENABLE ALWAYS TRIGGER entries_stay",
            "rewritten corrupt",
        ),
        (
            "ALTER TABLE here.entries DISABLE TRIGGER ALL; UPDATE here.entries SET body = replace(body, 'ana', 'eve');"
            " ALTER TABLE here.entries ENABLE ALWAYS TRIGGER entries_stay",
            "corrupt",
        ),
        ("DROP SCHEMA here CASCADE", "missing"),
        ("DROP TABLE here.entries", "corrupt"),
    ],
)
def test_what_others_put_there_is_refused(at_server: Server, made: Spot, statement: str, expected: str) -> None:
    at_server[0].run(*quoted(made, statement).split("; "))
    assert code(made) in expected.split()


def test_what_others_put_there_while_it_is_open_is_found_by_the_chain(at_server: Server, made: Spot) -> None:
    with closing(Ledger(made)) as ledger:
        at_server[0].run(quoted(made, "UPDATE here.states SET state = replace(state, '3/10', '1/10')"))
        with pytest.raises(LedgerError, match="balances do not fit"):
            ledger.reserve(PRICE, question="q", key="new")


def test_nothing_that_others_made_is_run(at_server: Server, made: Spot) -> None:
    """Whatever the role's own settings say, names are the server's and the ledger's own, and commits are durable."""
    server = at_server[0]
    server.run(
        "CREATE SCHEMA IF NOT EXISTS evil",
        "CREATE OR REPLACE FUNCTION evil.fail(int8, int8) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RAISE ''run''; END'",
        "DROP OPERATOR IF EXISTS evil.= (int8, int8)",
        "CREATE OPERATOR evil.= (FUNCTION = evil.fail, LEFTARG = int8, RIGHTARG = int8)",
        "CREATE TABLE IF NOT EXISTS evil.entries (seq int8)",
        "GRANT USAGE ON SCHEMA evil TO PUBLIC",
        f"ALTER ROLE {KEEPER} SET search_path = evil, pg_catalog",
        f"ALTER ROLE {KEEPER} SET synchronous_commit = off",
        f"ALTER ROLE {KEEPER} SET statement_timeout = '1ms'",
        f"ALTER ROLE {KEEPER} SET quote_all_identifiers = on",
        f"ALTER ROLE {KEEPER} SET default_transaction_isolation = 'read uncommitted'",
    )
    try:
        with closing(Ledger(made)) as ledger:
            ledger.reserve(PRICE, question="q", key="new")
            with ledger._file.write() as transaction:
                found = transaction.connection.execute("SELECT current_setting('synchronous_commit')").fetchone()
                assert found == ("on",)
            ledger.verify()
    finally:
        server.run(f"ALTER ROLE {KEEPER} RESET ALL")


@pytest.mark.parametrize("may_still", [True, False])
@pytest.mark.parametrize("empty", [True, False])
def test_what_others_made_in_its_own_schema_is_refused_and_not_run(
    at_server: Server, tmp_path: Path, *, may_still: bool, empty: bool
) -> None:
    server, at = at_server[0], at_server[1](tmp_path)
    if empty:
        server.run(quoted(at, f"CREATE SCHEMA here AUTHORIZATION {KEEPER}"))
    else:
        make(at, 10)
    server.run(
        "CREATE TABLE IF NOT EXISTS public.ran_as (who text)",
        "GRANT INSERT ON public.ran_as TO PUBLIC",
        "GRANT USAGE ON SCHEMA public TO PUBLIC",
        quoted(at, "GRANT USAGE, CREATE ON SCHEMA here TO reader"),
    )
    runs = "LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.ran_as VALUES (current_user)"
    with psycopg.connect(server.url(), autocommit=True) as stranger:
        for statement in (
            f"CREATE FUNCTION here.concat_ws(text, text, text) RETURNS text {runs}; RETURN ''; END$$",
            f"CREATE FUNCTION here.concat_ws(text, bigint, text, oid, oid) RETURNS text {runs}; RETURN ''; END$$",
            f"CREATE FUNCTION here.same(oid, regclass) RETURNS bool {runs}; RETURN true; END$$",
            "CREATE OPERATOR here.= (FUNCTION = here.same, LEFTARG = oid, RIGHTARG = regclass)",
        ):
            stranger.execute(quoted(at, statement))
    if not may_still:
        server.run(quoted(at, "REVOKE CREATE ON SCHEMA here FROM reader"))
    assert code(at) == "corrupt"
    assert server.rows("SELECT who FROM public.ran_as") == []


def test_an_empty_schema_in_which_others_may_make_something_is_refused(at_server: Server, tmp_path: Path) -> None:
    server, at = at_server[0], at_server[1](tmp_path)
    server.run(
        quoted(at, f"CREATE SCHEMA here AUTHORIZATION {KEEPER}"), quoted(at, "GRANT CREATE ON SCHEMA here TO reader")
    )
    assert code(at) == "corrupt"
    assert server.rows(f"SELECT 1 AS n FROM pg_tables WHERE schemaname = '{at.schema}'") == []


def test_a_ledger_that_loses_its_origin_while_it_is_open_is_refused(at_server: Server, made: Spot) -> None:
    with closing(Ledger(made)) as ledger:
        at_server[0].run(quoted(made, "DELETE FROM here.origin"))
        with pytest.raises(LedgerError) as refused:
            ledger.reserve(PRICE, question="q", key="new")
        assert refused.value.code == "corrupt"


def test_who_may_keep_a_ledger(at_server: Server, tmp_path: Path) -> None:
    server, place = at_server
    at = place(tmp_path)

    def refused(url: str, schema: str = at.schema) -> str:
        with pytest.raises(LedgerError) as error:
            Ledger(Spot(url, schema, tmp_path / "b.ledger"))
        assert "password" not in error.value.message
        assert not list(tmp_path.iterdir())
        return error.value.message

    server.run("CREATE SCHEMA IF NOT EXISTS others")
    if not server.rows("SELECT 1 AS n FROM pg_database WHERE datname = 'ascii'"):
        server.run("CREATE DATABASE ascii ENCODING SQL_ASCII TEMPLATE template0")
    assert "superuser" in refused(server.url("owner"))
    assert "may not make the schema" in refused(server.url("reader"))
    assert "does not let this user in" in refused(server.url("nobody_of_this_name"))
    assert "does not let this user in" in refused(server.url(KEEPER, "no_such"))
    assert "not in UTF8" in refused(server.url(KEEPER, "ascii"))
    assert "belongs to another user" in refused(server.url(KEEPER), "others")
    assert "does not answer" in refused(server.url(KEEPER).replace(str(PORT), "54999"))
    assert "does not answer" in refused("postgresql://keeper@127.0.0.1:1/postgres?connect_timeout=2")
    with psycopg.connect(at.server, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        with pytest.raises(LedgerError, match="hands on its connections"):
            tables.check_server(connection, connection.info.backend_pid + 1)  # as a pooler says at login
        connection.execute('CREATE SCHEMA "not empty"')
        connection.execute('CREATE TABLE "not empty".t (x int8)')
    assert "schema is not valid" in refused(server.url(KEEPER), "not empty")
    os.environ["PGPASSWORD"], right = "wrong", os.environ["PGPASSWORD"]
    try:
        assert "does not let this user in" in refused(server.url(KEEPER))
    finally:
        os.environ["PGPASSWORD"] = right


def test_a_schema_that_was_made_for_it(at_server: Server, tmp_path: Path) -> None:
    """A role that may not make schemas is given one."""
    server, place = at_server
    at = place(tmp_path)
    server.run(f'CREATE SCHEMA "{at.schema}" AUTHORIZATION reader')
    with closing(Ledger(Spot(server.url(), at.schema, at.beside))) as ledger:
        ledger.register({TOTAL: caps(2)}, "declared")
        assert ledger.verify().entries == 2


def test_a_lock_that_another_session_holds(made: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LedgerServer, "_busy_milliseconds", 50)
    with closing(Ledger(made)) as ledger, psycopg.connect(made.server) as holder:
        holder.execute(quoted(made, "LOCK TABLE here.origin IN SHARE ROW EXCLUSIVE MODE"))
        assert spent(ledger) == 3
        with pytest.raises(LedgerError) as busy:
            ledger.reserve(PRICE, question="q", key="new")
        assert busy.value.code == "busy"
        holder.rollback()
        ledger.reserve(PRICE, question="q", key="new")


# several machines


def test_a_machine_joins_with_the_note_of_another(made: Spot, tmp_path: Path) -> None:
    unknown = elsewhere(made, tmp_path / "unknown", knows=False)
    assert code(unknown) == "unnoted"
    assert not note.place(unknown.beside).exists()
    with closing(Ledger(elsewhere(made, tmp_path / "other"))) as other, closing(Ledger(made)) as here:
        other.reserve(PRICE, question="q", key="there")
        here.reserve(PRICE, question="q", key="here")
        assert spent(other) == spent(here) == 5
    with closing(Ledger.spend_unknown(unknown, None)) as joined:  # or with the owner's word that nothing is missing
        assert spent(joined) == 5


OTHER = """
import sys
from discreet.trusted.ledger import processes
processes._place = lambda: sys.argv[1]  # a machine of its own
from discreet.ledger import Ledger
from storms import PRICE, spot
ledger = Ledger(spot(sys.argv[2]))
given = ledger.reserve(PRICE, question="q", key=sys.argv[1], account=sys.argv[1], tables=["t"], limit=3)
print("ready", flush=True)
sys.stdin.readline()
ledger.commit(given.reserve_id, b"late")
print("stored", flush=True)
"""


def other_machine(at: Spot, name: str) -> subprocess.Popen[str]:
    """A process of another machine that has reserved, and stores an answer when it hears a line."""
    paths = os.pathsep.join((str(Path(discreet.__file__).parents[1]), str(Path(storms.__file__).parent)))
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, name, str(at)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def open_to(ledger: Ledger, analyst: str) -> bool:
    try:
        ledger.check(["t"], analyst)
    except EngineError:
        return False
    return True


def eventually(what: Callable[[], bool]) -> bool:
    end = time.monotonic() + 300
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return False


def test_a_death_on_another_machine_is_a_failure(made: Spot, tmp_path: Path) -> None:
    process = other_machine(elsewhere(made, tmp_path / "other"), "far")
    with closing(Ledger(made)) as ledger:
        assert open_to(ledger, "far")
        process.kill()
        process.communicate()
        assert eventually(lambda: not open_to(ledger, "far"))
        assert ledger.tables()["t"].failures == 1
        assert ledger.verify().unanswered == 1


def test_a_machine_that_was_cut_off_has_failed_and_its_late_answer_takes_nothing_back(
    at_server: Server, made: Spot, tmp_path: Path
) -> None:
    process = other_machine(elsewhere(made, tmp_path / "other"), "far")
    with closing(Ledger(made)) as ledger:
        ended = quoted(made, f"SELECT pg_terminate_backend(pid) AS n FROM pg_stat_activity WHERE usename = '{KEEPER}'")
        at_server[0].rows(ended)
        assert eventually(
            lambda: not at_server[0].rows(f"SELECT 1 AS n FROM pg_stat_activity WHERE usename = '{KEEPER}'")
        )
        assert eventually(lambda: not open_to(ledger, "far"))
        assert process.communicate("\n")[0] == "stored\n"
        assert not open_to(ledger, "far")
        assert ledger.tables()["t"].failures == 1
        assert ledger.answer("far", "far") == b"late"
        assert ledger.verify().unanswered == 0


def test_a_child_that_ends_does_not_end_its_parent(made: Spot, tmp_path: Path) -> None:
    """Its session is the parent's: seen from another machine, the parent lives on."""
    with closing(Ledger(made)) as ledger:
        ledger.reserve(PRICE, question="q", key="mine", account="near", tables=["t"])
        child = os.fork()
        if not child:
            ledger.close()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        seen = other_machine(elsewhere(made, tmp_path / "other"), "far")
        looked = subprocess.run(
            [sys.executable, "-c", LOOKS, str(elsewhere(made, tmp_path / "third"))],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert looked.stdout == "()\n"
        assert seen.communicate("\n")[0] == "stored\n"
        assert spent(ledger) == 5


LOOKS = """
import sys
from discreet.trusted.ledger import processes
processes._place = lambda: "third"
from discreet.ledger import Ledger
from storms import spot
ledger = Ledger(spot(sys.argv[1]))
ledger.settle()
print(ledger.tables()["t"].suspended if "t" in ledger.tables() else ())
"""


# a COMMIT without an answer


class Way:
    """A socket between a ledger and its server, which may be cut at a COMMIT."""

    def __init__(self, server: Postgres, folder: Path) -> None:
        self._to = str(server.folder / f".s.PGSQL.{PORT}")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / f".s.PGSQL.{PORT}"))
        self._listener.listen()
        self._ends: list[socket.socket] = []
        self.cut = ""
        self.open = True
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self.open:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            self._ends += [client, server]
            server.connect(self._to)
            silent = threading.Event()
            threading.Thread(target=self._there, args=(client, server, silent), daemon=True).start()
            threading.Thread(target=self._back, args=(server, client, silent), daemon=True).start()

    def _there(self, client: socket.socket, server: socket.socket, silent: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if b"COMMIT" in data and self.cut:
                    if self.cut == "before":
                        break
                    silent.set()  # the server hears it, and its answer is lost
                server.sendall(data)
        for one in (server, client):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _back(self, server: socket.socket, client: socket.socket, silent: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if silent.is_set():
                    self.open, self.cut = self.cut != "after, and closed", ""
                    break
                client.sendall(data)
        for one in (server, client):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for one in (self._listener, *self._ends):
            one.close()


@contextmanager
def through(server: Postgres, at: Spot) -> Iterator[tuple[Way, Spot]]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        way = Way(server, Path(folder))
        try:
            yield way, Spot(at.server.replace(str(server.folder), folder), at.schema, at.beside)
        finally:
            way.close()


def test_a_commit_whose_answer_was_lost_is_found_and_acknowledged(at_server: Server, made: Spot) -> None:
    with through(at_server[0], made) as (way, at), closing(Ledger(at)) as ledger:
        way.cut = "after"
        given = ledger.reserve(PRICE, question="q", key="new")
        assert isinstance(given, Reserved)
        assert spent(ledger) == 4
        assert note.read(made.beside) == ledger.last
        ledger.commit(given.reserve_id, b"1")
        assert ledger.verify().unanswered == 0


def test_a_commit_that_never_arrived_charges_nothing(at_server: Server, made: Spot) -> None:
    with through(at_server[0], made) as (way, at), closing(Ledger(at)) as ledger:
        way.cut = "before"
        closed = threading.Timer(1, lambda: setattr(way, "cut", ""))
        closed.start()
        with pytest.raises(LedgerError) as ended:
            ledger.reserve(PRICE, question="q", key="new")
        closed.join()
        assert (ended.value.code, spent(ledger)) == ("server", 3)
        ledger.reserve(PRICE, question="q", key="new")
        assert spent(ledger) == 4


def test_a_commit_that_nobody_can_ask_about_is_not_acknowledged_and_stands(
    at_server: Server, made: Spot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LedgerServer, "_busy_milliseconds", 300)
    with through(at_server[0], made) as (way, at), closing(Ledger(at)) as ledger:
        way.cut = "after, and closed"
        with pytest.raises(LedgerError) as ended:
            ledger.reserve(PRICE, question="q", key="new", request="r")
        assert ended.value.code == "server"
        assert "the charge stands" in ended.value.message
        with pytest.raises(LedgerError):
            ledger.reserve(PRICE, question="q", key="another")
        way.open = True
        assert spent(ledger) == 4
        with pytest.raises(LedgerError, match="no stored answer"):
            ledger.reserve(PRICE, question="q", key="new", request="r")


def _ended_in_the_middle(ledger: Ledger, server: Postgres) -> None:
    with ledger._file.write() as transaction:
        transaction.append("service", {"act": "x", "facts": {}})
        (pid,) = transaction.connection.execute("SELECT pg_backend_pid()").fetchone()
        server.rows(f"SELECT pg_terminate_backend({pid}, 300000) AS n")  # waits until it has ended


def test_a_session_that_is_ended_in_the_middle_charges_nothing(at_server: Server, made: Spot) -> None:
    with closing(Ledger(made)) as ledger:
        with pytest.raises(LedgerError) as ended:
            _ended_in_the_middle(ledger, at_server[0])
        assert ended.value.code == "server"
        assert ledger.verify().entries == 8
        ledger.reserve(PRICE, question="q", key="new")


def test_an_idle_session_that_was_ended_is_made_anew(at_server: Server, made: Spot) -> None:
    with closing(Ledger(made)) as ledger:
        ended = "SELECT pg_terminate_backend(pid, 300000) AS n FROM pg_stat_activity"
        at_server[0].rows(f"{ended} WHERE usename = '{KEEPER}'")
        ledger.reserve(PRICE, question="q", key="new")


@pytest.mark.parametrize("end_first", [False, True])
def test_a_charge_that_no_replica_has_is_not_acknowledged(at_server: Server, made: Spot, *, end_first: bool) -> None:
    """The server is told to wait for a replica that is not there, and then not to wait: at once, or for the commit
    that looks for a charge whose session was ended while it waited."""
    server = at_server[0]
    with closing(Ledger(made)) as ledger:
        server.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")

        def told() -> bool:  # a new session has what the server's first process has read and sent on
            with server.session() as session:
                session.execute("SELECT current_setting('synchronous_standby_names')")
                return bool(session.fetchall() == [("nobody",)])

        assert eventually(told)
        server.run("CHECKPOINT")  # by the process that says whether commits wait, after it has read the same
        waits = f"FROM pg_stat_activity WHERE usename = '{KEEPER}' AND wait_event = 'SyncRep'"

        def give_up() -> None:
            if end_first:
                assert eventually(lambda: bool(server.rows(f"SELECT pg_terminate_backend(pid, 5000) AS n {waits}")))
            assert eventually(lambda: bool(server.rows(f"SELECT pg_cancel_backend(pid) AS n {waits}")))

        thread = threading.Thread(target=give_up)
        thread.start()
        try:
            with pytest.raises(LedgerError, match="did not wait until a replica had the charge"):
                ledger.reserve(PRICE, question="q", key="new")
        finally:
            thread.join()
            server.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        assert spent(ledger) == 4


# the server itself


STUBBORN = """
import os, sys, time
from discreet.errors import LedgerError
from discreet.ledger import Ledger
from storms import PRICE, spot
ledger = None
for turn in range(10**6):
    try:
        ledger = ledger or Ledger(spot(sys.argv[1]))
        given = ledger.reserve(PRICE, question="a storm", key=f"{os.getpid()}-{turn}")
        os.write(1, f"{given.reserve_id}\\n".encode())
        ledger.commit(given.reserve_id, b"{}")
    except LedgerError as error:
        assert error.code in ("server", "busy"), error
        time.sleep(0.1)
"""


def _a_session_is_killed(server: Postgres) -> bool:
    """All sessions end then, and the server goes through its journal."""
    found = None
    with suppress(psycopg.OperationalError), psycopg.connect(server.url("owner"), autocommit=True) as connection:
        found = connection.execute(f"SELECT pid FROM pg_stat_activity WHERE usename = '{KEEPER}'").fetchone()
    if found is None:
        return False
    try:
        os.kill(found[0], signal.SIGKILL)
    except ProcessLookupError:  # it ended meanwhile, or the server still lists one that was killed before
        return False
    return True


@pytest.mark.storm
def test_a_server_that_is_killed_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    with ledger_server() as (server, place):
        at = place(tmp_path)
        make(at, 10**7)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        told = [tmp_path / f"released-{number}" for number in range(2)]
        writers = []
        for file in told:
            with file.open("w") as out:
                writers.append(subprocess.Popen([sys.executable, "-c", STUBBORN, str(at)], stdout=out, env=environment))

        def lines() -> list[str]:
            return [line for file in told for line in file.read_text().split("\n")[:-1]]

        try:
            for kill in range(5):
                assert eventually(lambda wanted=3 * (kill + 1): len(lines()) >= wanted), "nobody writes"
                assert eventually(lambda: _a_session_is_killed(server))
        finally:
            for writer in writers:
                writer.kill()
                writer.wait()
        released = lines()
        assert eventually(lambda: _reached(at))
        storm = storms.aftermath(at, released)
        assert storm.unknown == 0
        assert storm.released >= 15


def _reached(at: Spot) -> bool:
    try:
        Ledger(at).close()
    except LedgerError:
        return False
    return True


def _set_back(server: Postgres, *, promoted: bool) -> None:
    """The server is what it was when it was copied; `promoted`: as a replica that takes over."""
    data = server.folder / "data"
    shutil.rmtree(data)
    subprocess.run(["cp", "-a", server.folder / "copied", data], check=True)
    if promoted:
        with (data / "postgresql.auto.conf").open("a") as file:
            file.write("restore_command = 'false'\n")
        (data / "recovery.signal").touch()
        os.chown(data / "recovery.signal", data.stat().st_uid, data.stat().st_gid)


@pytest.mark.storm
@pytest.mark.parametrize("promoted", [True, False])
def test_a_replica_that_takes_over_without_the_last_charges_is_refused(promoted: bool, tmp_path: Path) -> None:
    """By the note of the machine that charged; and by all others where the server knows that it took over."""
    with ledger_server() as (server, place):
        at = place(tmp_path / "here")
        at.beside.parent.mkdir()
        make(at, 10)
        other = elsewhere(at, tmp_path / "other")
        server.stop()
        subprocess.run(["cp", "-a", server.folder / "data", server.folder / "copied"], check=True)
        server.start()
        with closing(Ledger(at)) as ledger:
            ledger.reserve(PRICE, question="q", key="lost")
        server.stop()
        _set_back(server, promoted=promoted)
        server.start()
        assert eventually(lambda: not server.rows("SELECT pg_is_in_recovery() AS n")[0][0])
        assert code(at) == "rewritten"
        if not promoted:  # a copy of the server's files that nobody can tell from the server
            with closing(Ledger(other)) as unaware:
                assert spent(unaware) == 0
            return
        assert code(other) == "rewritten"
        Ledger.spend_unknown(other, PRICE).close()
        with closing(Ledger(other)) as goes_on:
            assert spent(goes_on) == 1
            goes_on.reserve(PRICE, question="q", key="another")
        assert code(at) == "rewritten"
        shutil.copy(note.place(other.beside), note.place(at.beside))
        with closing(Ledger(at)) as again:
            assert spent(again) == 2
            again.verify()


def test_a_restored_copy_is_refused_on_every_machine(at_server: Server, made: Spot, tmp_path: Path) -> None:
    """Tables that were put back as they are stored have another schema around them."""
    other = elsewhere(made, tmp_path / "other")
    at_server[0].run(
        quoted(made, "ALTER SCHEMA here RENAME TO was"),
        quoted(made, f"CREATE SCHEMA here AUTHORIZATION {KEEPER}"),
        *(quoted(made, f"ALTER TABLE was.{name} SET SCHEMA here") for name in ("origin", "entries", "states")),
        quoted(made, "ALTER FUNCTION was.stay() SET SCHEMA here"),
        "DROP SCHEMA was",
    )
    assert [code(one) for one in (made, other)] == ["rewritten", "rewritten"]
    Ledger.spend_unknown(made, None).close()
    with closing(Ledger(other)) as ledger:
        assert spent(ledger) == 3


def test_a_server_without_fsync_is_told(tmp_path: Path) -> None:
    with ledger_server() as (server, place):
        server.run("ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()")
        with closing(Ledger(place(tmp_path))) as ledger:
            assert isinstance(ledger._file, LedgerServer)
            assert eventually(lambda: ledger._file.cautions() == ["full_page_writes"])  # type: ignore[attr-defined]
