"""Verifiers of SCRAM-SHA-256, held against the RFC's own example and against PostgreSQL."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from discreet.service.scram import salt_of, verifier
from postgres_tools import PORT, Postgres, running


def test_the_example_of_rfc_7677() -> None:
    """The client's proof opens the stored key, and the server's signature is the one that the RFC has."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    made = verifier("pencil", salt)
    assert salt_of(made) == salt
    kind, parameters, keys = made.split("$")
    assert (kind, parameters) == ("SCRAM-SHA-256", "4096:W22ZaJ0SNY7soEsUEjb6gQ==")
    stored, server = (base64.b64decode(one) for one in keys.split(":"))
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    said = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}".encode()
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(stored, said, "sha256")
    assert hashlib.sha256(bytes(a ^ b for a, b in zip(proof, signature, strict=True))).digest() == stored
    expected = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert base64.b64encode(hmac.digest(server, said, "sha256")).decode() == expected


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running(18) as server:
        yield server


@pytest.mark.engine
@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is missing")
def test_postgresql_takes_a_verifier_as_its_own(postgres: Postgres) -> None:
    secret = "discreet_" + "a-B_9" * 8
    postgres.run(f"CREATE ROLE ana LOGIN PASSWORD '{verifier(secret, salt_of(None))}'")
    postgres.run(f"CREATE ROLE bob LOGIN PASSWORD '{secret}'")
    ((kept,),) = postgres.rows("SELECT rolpassword::text FROM pg_authid WHERE rolname = 'bob'")
    assert kept == verifier(secret, salt_of(kept))  # what PostgreSQL itself makes of it
    for password, code in ((secret, 0), ("wrong", 2)):
        command = ["psql", "-h", str(postgres.folder), "-p", str(PORT), "-U", "ana", "-Atc", "SELECT 1", "postgres"]
        said = subprocess.run(command, env={"PGPASSWORD": password, "PATH": "/usr/bin:/bin"}, capture_output=True)
        assert said.returncode == code
