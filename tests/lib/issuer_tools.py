"""An OpenID Connect issuer for tests: two documents over TLS on a socket of this machine, and keys that sign."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.warnings import InsecureKeyLengthWarning

AUDIENCE = "discreet-clinic"


def certificate(folder: Path) -> tuple[str, str]:
    """A certificate of this machine's, and its key."""
    files = str(folder / "server.pem"), str(folder / "server.key")
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    command = [*made.split(), "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-out", files[0], "-keyout"]
    subprocess.run([*command, files[1]], check=True, capture_output=True)
    return files


def encoded(value: Any) -> str:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@dataclass
class TestIssuer:
    """What the issuer publishes may be changed while it runs; `asked` has the paths that were asked for."""

    __test__ = False

    url: str = ""
    asked: list[str] = field(default_factory=list)
    keys: dict[str, Any] = field(default_factory=dict)
    more: list[Mapping[str, Any]] = field(default_factory=list)
    """Further keys, as they are published."""
    said: dict[str, bytes] = field(default_factory=dict)
    """What is said at a path instead."""
    slow: float = 0.0
    moved: str = ""

    def __post_init__(self) -> None:
        self.keys = {
            "RS256": rsa.generate_private_key(65537, 2048),
            "ES256": ec.generate_private_key(ec.SECP256R1()),
            "EdDSA": ed25519.Ed25519PrivateKey.generate(),
        }

    def published(self) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = list(self.more)
        for algorithm, key in self.keys.items():
            plain = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
            found.append({**plain, "kid": f"our-{algorithm}", "use": "sig"})
        return found

    def claims(self, **more: Any) -> dict[str, Any]:
        now = int(time.time())
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "ana", "iat": now, "exp": now + 300}
        return {name: value for name, value in (usual | more).items() if value is not None}

    def token(
        self, algorithm: str = "RS256", key: Any = None, headers: Mapping[str, Any] | None = None, **more: Any
    ) -> str:
        """A token of the issuer's; claims that are None are left out."""
        head = {"kid": f"our-{algorithm}", **(headers or {})}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureKeyLengthWarning)
            return jwt.encode(self.claims(**more), key or self.keys[algorithm], algorithm, head)

    def forged(self, header: Mapping[str, Any], secret: bytes = b"", **more: Any) -> str:
        """A token that is signed with a secret that both know, or not at all."""
        text = f"{encoded(header)}.{encoded(self.claims(**more))}"
        signature = hmac.digest(secret, text.encode(), hashlib.sha256) if secret else b""
        return f"{text}.{encoded(signature)}"

    def reply(self, path: str) -> tuple[int, bytes]:
        self.asked.append(path)
        time.sleep(self.slow)
        if path in self.said:
            return 200, self.said[path]
        if path == "/.well-known/openid-configuration":
            return 200, json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"}).encode()
        status = {"/keys": 200, "/broken": 500, "/large": 200}.get(path, 404)
        padding = b" " * 150_000 if path == "/large" else b""
        return status, json.dumps({"keys": self.published()}).encode() + padding


@contextmanager
def running(folder: Path) -> Iterator[tuple[TestIssuer, str]]:
    """An issuer, and the file of the certificate that it is known by."""
    pem, key = certificate(folder)
    issuer = TestIssuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if issuer.moved:
                self.send_response(302)
                self.send_header("Location", issuer.moved + self.path)
                self.end_headers()
                return
            status, content = issuer.reply(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

        def handle(self) -> None:
            with suppress(OSError):  # the other side has had enough
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    issuer.url = f"https://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield issuer, pem
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
