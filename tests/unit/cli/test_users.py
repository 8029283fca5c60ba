"""The options of `rota users` and where a password comes from; tests/cli/test_users.py runs it on a broker."""

from __future__ import annotations

import getpass
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from rota.cli.main import parser_of
from rota.cli.settings import UsageError
from rota.cli.users import PASSWORD_BYTES_MAX, mechanisms_of, read_password, upsertion_of
from rota.protocol.scram import SHA_256, SHA_512, salted_password


def options(*arguments: str) -> Any:
    return parser_of("users").parse_args(list(arguments))


def test_mechanisms_are_all_or_those_named() -> None:
    assert mechanisms_of(options("add", "alice")) == [SHA_256, SHA_512]
    named = ("--mechanism", "SCRAM-SHA-512", "--mechanism", "SCRAM-SHA-512")
    assert mechanisms_of(options("remove", "alice", *named)) == [SHA_512]


def test_a_password_is_no_argument(capsys: pytest.CaptureFixture[str]) -> None:
    """CU1. Nor is it in the error text."""
    for wrong in (
        ("add", "alice", "planted"),
        ("add", "alice", "--password", "planted"),
        ("add", "a", "--iterations", "1"),
    ):
        with pytest.raises(SystemExit):
            options(*wrong)
        assert "planted" not in capsys.readouterr().err


def test_a_password_is_the_first_line_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "password"
    for content, expected in ((b"planted", "planted"), (b"planted \r\nrest\n", "planted "), ("ä\n".encode(), "ä")):
        path.write_bytes(content)
        assert read_password(options("add", "alice", "--password-file", str(path))) == expected
    for content, reason in ((b"", "empty"), (b"\nplanted", "empty"), (b"\xff", "UTF-8"), (b"x" * 5000, "more than")):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=reason):
            read_password(options("add", "alice", "--password-file", str(path)))
    with pytest.raises(UsageError, match="cannot be read"):
        read_password(options("add", "alice", "--password-file", str(tmp_path / "missing")))


class Stdin:
    def __init__(self, content: bytes, *, is_terminal: bool = False) -> None:
        self.buffer, self._is_terminal = io.BytesIO(content), is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def test_a_password_is_read_from_standard_input_or_asked_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(b"planted\n"))
    assert read_password(options("add", "alice", "--password-file", "-")) == "planted"
    with pytest.raises(UsageError, match="no terminal"):
        read_password(options("add", "alice"))
    monkeypatch.setattr(sys, "stdin", Stdin(b"", is_terminal=True))
    answers = ["planted", "planted", "planted", "other"]
    monkeypatch.setattr(getpass, "getpass", lambda prompt: answers.pop(0))
    assert read_password(options("add", "alice")) == "planted"
    with pytest.raises(UsageError, match="differ"):
        read_password(options("add", "alice"))
    assert PASSWORD_BYTES_MAX == 4096


def test_a_credential_has_a_salt_of_its_own_and_no_password() -> None:
    first, second = (upsertion_of("alice", SHA_512, "planted", 4096) for _ in range(2))
    assert first.salt != second.salt
    assert first.salted_password == salted_password(SHA_512, "planted", first.salt, 4096)
    assert "planted" not in repr(first)
