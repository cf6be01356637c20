"""Secrets that outlive a process: an encrypted file of its own beside the ledger, under a key that lies elsewhere.

What lies in the file may undo what was released with noise. So it has mode 0600, and is encrypted and authenticated
(AES-256-GCM with a fresh random nonce each time), under a key in a file that lies in another folder: a copy of the
folder with ledger and state, as a backup or a disk that is given away, says nothing. Who has both files, or the running
process, has all. It is as long as the next power of two, from 512 bytes on. AES-GCM takes less than 2^31 bytes at once,
so one that is longer than 2^30 is encrypted in pieces.

To prove: `write_sealed` returns when the whole secret is on the disk, and before that the former one is there whole;
`unsealed` gives what was written, under this name, or fails. That it is the newest one follows from the ledger: whoever
has such a file holds it against that.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from discreet.errors import LedgerError
from discreet.trusted.ledger.note import appearing

_NONCE, _KEY, _LEAST, _TAG = 12, 32, 512, 16
_PIECE = 1 << 30
Part = TypeVar("Part")


@dataclass(frozen=True)
class SealedFile:
    """Where a secret and its key lie. A kind of secret has its own `format`, and `kind` is how its errors begin."""

    path: Path
    key: Path

    format: ClassVar[bytes] = b""
    kind: ClassVar[str] = ""

    @contextmanager
    def held(self) -> Iterator[bytes]:
        """The key, which is made where there is no file; while it is held, no other process has it. Raises LedgerError
        "… key"."""
        if not self.key.exists() and not self.path.exists():
            with suppress(OSError):
                self.key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(OSError), appearing(self.key) as draft, draft.open("w") as file:
                file.write(secrets.token_hex(_KEY) + "\n")
                file.flush()
                os.fsync(file.fileno())
        code = f"{self.kind} key"
        try:
            descriptor = os.open(self.key, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            raise LedgerError.of(code, file=self.key.name) from None
        try:
            alone, text = False, ""
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                alone = os.fstat(descriptor).st_mode & 0o077 == 0
                text = os.read(descriptor, 4 * _KEY).decode("ascii", "replace").strip()
            LedgerError.unless(alone and len(text) == 2 * _KEY and _hexadecimal(text), code, file=self.key.name)
            yield bytes.fromhex(text)
        finally:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for a child that was forked meanwhile, and has it too
            os.close(descriptor)

    def unsealed(self, key: bytes, name: str) -> bytes:
        """The whole secret, for the gate's frames alone. Whatever is raised is a failure there."""
        nonce, body = self._parts()
        pieces = [body[at : at + _PIECE + _TAG] for at in range(0, len(body), _PIECE + _TAG)] or [b""]
        return b"".join(AESGCM(key).decrypt(*self._bound(name, nonce, at, pieces)) for at in range(len(pieces)))

    def _bound(self, name: str, nonce: bytes, at: int, pieces: list[bytes]) -> tuple[bytes, bytes, bytes]:
        """The nonce of a piece, the piece, and what it is bound to: the secret's kind and name, and where there are
        several, which one it is of how many, written together under this nonce."""
        of = b" %d of %d " % (at, len(pieces)) + nonce if len(pieces) > 1 else b""
        own = (int.from_bytes(nonce) + at) % (1 << 8 * _NONCE)
        return own.to_bytes(_NONCE), pieces[at], self.format + name.encode() + of

    def part(self, key: bytes, name: str, read: Callable[[bytes], Part]) -> Part | None:
        """What may be seen of the secret, as `read` gives it; None where there is no file. Raises LedgerError "…
        restored" where it is not the one of this name. In the frames of whatever is raised nothing of it is, also of an
        interrupt."""
        if not self.path.exists():
            return None
        found, end = None, None
        try:
            found = read(self.unsealed(key, name))
        except (OSError, InvalidTag, ValueError):
            pass
        except BaseException as error:  # its frames hold the secret
            end = type(error)(*error.args)
        if end is not None:
            raise end
        LedgerError.unless(found is not None, f"{self.kind} restored", file=self.path.name)
        return found

    def _parts(self) -> tuple[bytes, bytes]:
        """The nonce, and what is encrypted. Raises OSError, or ValueError where the file is no such secret."""
        content = self.path.read_bytes()
        if not content.startswith(self.format) or len(content) < len(self.format) + _NONCE:
            raise ValueError("no secret of this kind")
        body = content[len(self.format) :]
        return body[:_NONCE], body[_NONCE:]

    def write_sealed(self, plain: bytes, key: bytes, name: str) -> bool:
        """Puts a secret in the place of the one that is there, durably. Whether it could be written: who calls holds
        exact numbers, and no error is to carry them."""
        nonce = secrets.token_bytes(_NONCE)
        padded = plain.ljust(max(_LEAST, 1 << (len(plain) - 1).bit_length()))
        pieces = [padded[at : at + _PIECE] for at in range(0, len(padded), _PIECE)]
        try:
            with appearing(self.path, anew=True) as draft, draft.open("wb") as file:
                file.write(self.format + nonce)
                for at in range(len(pieces)):
                    file.write(AESGCM(key).encrypt(*self._bound(name, nonce, at, pieces)))
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            return False
        return True


def _hexadecimal(text: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in text)
