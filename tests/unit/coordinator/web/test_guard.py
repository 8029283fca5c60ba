"""Which HTTP requests are served."""

from __future__ import annotations

import pytest

from rota.coordinator.web.guard import BODY_BYTES_MAX, is_known_host, refusal

ACTION = {
    "host": "localhost:8080",
    "x-rota-action": "1",
    "content-type": "application/json; charset=utf-8",
    "content-length": "2",
    "origin": "http://localhost:8080",
}


def status(method: str, headers: dict[str, str], *, is_read_only: bool = False) -> int:
    found = refusal(method, headers, {"broker-1"}, is_read_only=is_read_only)
    return 200 if found is None else found[0]


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1", "LOCALHOST", "127.0.0.1:8", "10.1.2.3", "[::1]:8", "[::1]", "broker-1:80"]
)
def test_addresses_and_known_names_are_hosts(host: str) -> None:
    assert is_known_host(host, {"broker-1"})


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io", "[", ":"]
)
def test_every_other_name_is_refused(host: str) -> None:
    assert not is_known_host(host, {"broker-1"})
    assert status("GET", {"host": host}) == 421


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(method: str) -> None:
    assert status(method, {"host": "localhost"}) == 405


def test_an_action_of_this_site_is_served() -> None:
    assert status("POST", ACTION) == 200
    assert status("POST", {key: value for key, value in ACTION.items() if key != "origin"}) == 200


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"x-rota-action": None}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": None}, 415),
        ({"content-length": None}, 413),
        ({"transfer-encoding": "chunked"}, 413),
        ({"content-length": str(BODY_BYTES_MAX + 1)}, 413),
        ({"content-length": "-1"}, 413),
    ],
)
def test_an_action_that_another_site_could_send_is_refused(change: dict[str, str | None], expected: int) -> None:
    headers = {key: value for key, value in {**ACTION, **change}.items() if value is not None}
    assert status("POST", headers) == expected


def test_a_read_only_console_refuses_every_action() -> None:
    assert status("POST", ACTION, is_read_only=True) == 403
    assert status("GET", {"host": "localhost"}, is_read_only=True) == 200
