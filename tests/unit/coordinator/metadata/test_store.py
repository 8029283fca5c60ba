from __future__ import annotations

from rota.coordinator.metadata.store import BadVersion, NoNode, StoreError


def test_an_error_names_its_node() -> None:
    error = BadVersion("/a/b", "it has version 3, not 1")
    assert isinstance(error, StoreError)
    assert error.path == "/a/b"
    assert str(error) == "BadVersion: /a/b (it has version 3, not 1)"
    assert str(NoNode("/x")) == "NoNode: /x"
