"""Principals and their text form."""

from __future__ import annotations

import pytest

from rota.coordinator.security.principal import ANONYMOUS, Principal


def test_a_principal_and_its_text() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert Principal.parse("User:CN=Bob,OU=a:b,O=X") == Principal("User", "CN=Bob,OU=a:b,O=X")
    assert Principal.parse(str(ANONYMOUS)) == ANONYMOUS


@pytest.mark.parametrize("text", ["", "alice", ":alice", "User:"])
def test_a_text_that_is_no_principal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected TYPE:NAME"):
        Principal.parse(text)
