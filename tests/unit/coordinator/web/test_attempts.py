"""WB25: the limits of attempts, and that nobody is locked out by others."""

from __future__ import annotations

import pytest

from rota.coordinator.web.attempts import (
    ATTEMPTS_MS,
    FAILURES_MAX,
    FAILURES_PER_SOURCE_MAX,
    KNOWN_MAX,
    Attempts,
    source_of,
)


def test_attempts_of_strangers_are_bounded_for_each_source_and_in_all() -> None:
    attempts = Attempts()
    for number in range(FAILURES_MAX):
        assert attempts.begin("u", str(number // FAILURES_PER_SOURCE_MAX), 0)
    assert not attempts.begin("u", "another", ATTEMPTS_MS - 1)
    assert attempts.begin("u", "another", ATTEMPTS_MS)


def test_an_attempt_that_succeeds_does_not_count() -> None:
    attempts = Attempts()
    for _ in range(2 * FAILURES_MAX):
        assert attempts.begin("u", "host", 0)
        attempts.succeeded("u", "host")


def test_strangers_do_not_lock_out_a_user_where_it_was_before() -> None:
    attempts = Attempts()
    assert attempts.begin("u", "host", 0)
    attempts.succeeded("u", "host")
    for number in range(2 * FAILURES_MAX):
        attempts.begin("v", f"host{number % 50}", 0)
        attempts.begin("v", "host", 0)
    assert not attempts.begin("u", "elsewhere", 0)
    assert [attempts.begin("u", "host", 0) for _ in range(FAILURES_PER_SOURCE_MAX + 1)][-2:] == [True, False]


def test_the_known_users_are_bounded() -> None:
    attempts = Attempts()
    for number in range(KNOWN_MAX + 1):
        attempts.succeeded(str(number), "host")
    assert [attempts.is_known(str(number), "host") for number in (0, 1, KNOWN_MAX)] == [False, True, True]


@pytest.mark.parametrize(
    ("host", "source"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("", ""),
    ],
)
def test_the_addresses_of_one_ipv6_network_are_one_source(host: str, source: str) -> None:
    assert source_of(host) == source
