"""Names of sockets, as logs and groups show them."""

from __future__ import annotations

from typing import Any

import pytest

from rota.coordinator.network.owner import address


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (("127.0.0.1", 9092), ("127.0.0.1", 9092)),
        (("::ffff:10.0.0.1", 9092, 0, 0), ("10.0.0.1", 9092)),
        (("::1", 9092, 0, 0), ("::1", 9092)),
        ("", ("", 0)),
        (None, ("", 0)),
    ],
)
def test_an_address_is_shown_as_it_is_dialled(name: Any, shown: tuple[str, int]) -> None:
    assert address(name) == shown
