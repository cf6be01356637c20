"""The secret file of a stream: durable, encrypted, its owner's alone, and silent about what is in it."""

from __future__ import annotations

import os
import stat
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidTag

from discreet.errors import LedgerError
from discreet.trusted.ring_c import sealed_file
from discreet.trusted.ring_c.arrivals import Person
from discreet.trusted.ring_c.stream_state import Seen, State, StateFile

KIND = "exact"
COUNTED = 777_123_999
WHOLE = State("ab" * 32, ((COUNTED, 0), (-3, 1)), {"c" * 32: Person(2, {0: COUNTED, 1: 1})}, '{"measured": [5, 6]}')


@pytest.fixture
def file(tmp_path: Path) -> StateFile:
    (tmp_path / "keys").mkdir()
    return StateFile(tmp_path / "clinic.daily.stream", tmp_path / "keys" / "daily.key")


def test_what_was_written_is_read_in_files_of_the_owners_alone(file: StateFile) -> None:
    with file.held() as key:
        assert file.seen(key, "daily") is None
        assert file.write(State("ab"), key, "daily")
        assert file.write(WHOLE, key, "daily")
        assert file.read(key, "daily") == WHOLE
        assert file.seen(key, "daily") == Seen("ab" * 32, 2, '{"measured": [5, 6]}')
    with file.held() as again:
        assert again == key
    assert all(stat.S_IMODE(one.stat().st_mode) == 0o600 for one in (file.path, file.key))
    assert sorted(file.path.parent.iterdir()) == [file.path, file.key.parent]


def test_the_file_holds_nothing_that_can_be_read_and_no_exact_length(file: StateFile) -> None:
    with file.held() as key:
        sizes = set()
        for count in (1, 2, 3):
            file.write(State("ab" * 32, (), {f"{one:032}": Person(1, {0: 1}) for one in range(count)}), key, "daily")
            sizes.add(file.path.stat().st_size)
        assert len(sizes) == 1
        file.write(WHOLE, key, "daily")
        first = file.path.read_bytes()
        file.write(WHOLE, key, "daily")
    assert first != file.path.read_bytes()
    for part in (str(COUNTED).encode(), b"measured", b"ab" * 8, b"c" * 8):
        assert part not in first


def test_a_state_beyond_what_is_encrypted_at_once_lies_in_pieces(
    file: StateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them can be left out, moved, or be of another state or time."""
    many = State("ab" * 32, (), {f"{one:032}": Person(1, {0: 1}) for one in range(40)})
    with file.held() as key:
        assert file.write(many, key, "daily")
        whole = len(file.path.read_bytes()) - len(file.format) - 28
        monkeypatch.setattr(sealed_file, "_PIECE", whole // 4)
        contents = []
        for state in (replace(many, released="another"), many):
            assert file.write(state, key, "daily")
            assert file.read(key, "daily") == state
            contents.append(file.path.read_bytes())
        head, size = len(file.format) + 12, whole // 4 + 16
        older, content = contents
        assert len(content) == head + 4 * size
        first, second = content[head : head + size], content[head + size : head + 2 * size]
        after = content[head + 2 * size :]
        for changed in (
            content[:head] + second + first + after,
            content[: -2 * size],
            content[:-size],
            content + after[:size],
            older[: head + size] + content[head + size :],
            content[: head + size] + older[head + size :],
            content[:head] + first + older[head + size : head + 2 * size] + after,
        ):
            file.path.write_bytes(changed)
            with pytest.raises(LedgerError):
                file.seen(key, "daily")
        file.path.write_bytes(content)
        assert file.read(key, "daily") == many


def test_a_file_without_a_secret_fails_as_any_that_was_changed(file: StateFile) -> None:
    with file.held() as key:
        file.write(WHOLE, key, "daily")
        file.path.write_bytes(file.path.read_bytes()[: len(file.format) + 12])  # the nonce alone
        with pytest.raises(InvalidTag):
            file.unsealed(key, "daily")


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "name", "key", "text"])
def test_another_state_is_refused_and_the_error_carries_nothing(file: StateFile, damage: str) -> None:
    with file.held() as key:
        file.write(WHOLE, key, "daily")
        content, name = file.path.read_bytes(), "daily"
        if damage == "flipped":
            file.path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        elif damage == "cut":
            file.path.write_bytes(content[:-1])
        elif damage == "empty":
            file.path.write_bytes(b"")
        elif damage == "text":
            file.path.write_text("discreet stream 1\n")
        elif damage == "name":
            name = "weekly"
        else:
            key = bytes(32)
        with pytest.raises(LedgerError) as caught:
            file.seen(key, name)
    assert caught.value.code == "stream"
    assert str(COUNTED) not in str(caught.value)
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert str(COUNTED) not in shown
    assert caught.value.__context__ is None


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, KeyError])
def test_an_interrupt_while_it_is_read_carries_nothing(
    file: StateFile, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def interrupted(plain: bytes) -> State:
        assert str(COUNTED).encode() in plain
        raise error

    with file.held() as key:
        file.write(WHOLE, key, "daily")
        monkeypatch.setattr(State, "from_json", interrupted)
        with pytest.raises(error) as caught:
            file.seen(key, "daily")
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert str(COUNTED) not in shown
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_a_folder_in_the_place_of_the_key_is_no_key(file: StateFile) -> None:
    file.key.mkdir(mode=0o700)
    with pytest.raises(LedgerError) as caught, file.held():
        pass
    assert caught.value.code == "stream"


@pytest.mark.parametrize("text", ["", "no key", "ab" * 31, "AB" * 32, "é" * 64, None])
def test_a_key_file_without_a_key_is_refused(file: StateFile, text: str | None) -> None:
    with file.held() as key:
        file.write(WHOLE, key, "daily")
    file.key.unlink()
    if text is not None:
        file.key.write_text(text)
        file.key.chmod(0o600)
    with pytest.raises(LedgerError) as caught, file.held():
        pass
    assert caught.value.code == "stream"


def test_a_key_that_others_may_read_is_refused(file: StateFile) -> None:
    with file.held():
        pass
    file.key.chmod(0o640)
    with pytest.raises(LedgerError), file.held():
        pass


def test_a_state_that_cannot_be_written_leaves_the_former_one(file: StateFile) -> None:
    with file.held() as key:
        file.write(WHOLE, key, "daily")
        gone = StateFile(file.path.parent / "nowhere" / "x.stream", file.key)
        assert not gone.write(WHOLE, key, "daily")
        assert file.read(key, "daily") == WHOLE


def test_who_holds_it_holds_it_alone(file: StateFile) -> None:
    reader, writer = os.pipe()
    with file.held():
        child = os.fork()
        if child == 0:
            with file.held():
                os.write(writer, b"in")
            os._exit(0)
        os.write(writer, b"first ")
    os.waitpid(child, 0)
    assert os.read(reader, 99) == b"first in"


def test_no_representation_shows_what_was_counted() -> None:
    assert str(COUNTED) not in repr(WHOLE)
    assert "ab" * 32 not in repr(WHOLE)
    assert "measured" not in repr(WHOLE.seen)
