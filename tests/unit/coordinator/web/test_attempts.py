"""WB25: the limits of attempts, and that nobody is locked out by others."""

from __future__ import annotations

from rota.coordinator.web.attempts import (
    ATTEMPTS_MS,
    FAILURES_MAX,
    FAILURES_PER_SOURCE_MAX,
    KNOWN_MAX,
    Attempts,
)


def logged_in(attempts: Attempts, user: str = "u") -> None:
    """One attempt, which succeeds."""
    attempt = attempts.begin(user, "host", 0)
    assert attempt is not None
    attempts.succeeded(attempt)


def test_first_logins_are_bounded_for_each_source_and_in_all() -> None:
    attempts = Attempts()
    for number in range(FAILURES_MAX):
        assert attempts.begin("u", str(number // FAILURES_PER_SOURCE_MAX), 0)
    assert not attempts.begin("u", "another", ATTEMPTS_MS - 1)
    assert attempts.begin("u", "another", ATTEMPTS_MS)


def test_an_attempt_that_succeeds_does_not_count() -> None:
    attempts = Attempts()
    for _ in range(2 * FAILURES_MAX):
        logged_in(attempts)


def test_attempts_at_one_time_that_succeed_do_not_count() -> None:
    """Programs with a password begin together when a broker has started."""
    attempts = Attempts()
    begun = [attempts.begin("u", "host", 0) for _ in range(FAILURES_PER_SOURCE_MAX)]
    for attempt in begun:
        assert attempt is not None
        attempts.succeeded(attempt)
    assert all(attempts.begin("v", "host", 0) for _ in range(FAILURES_PER_SOURCE_MAX))
    assert not attempts.begin("v", "host", 0)


def test_first_logins_do_not_lock_out_a_user_who_has_logged_in_before() -> None:
    attempts = Attempts()
    logged_in(attempts)
    for number in range(2 * FAILURES_MAX):
        attempts.begin("v", f"host{number % 50}", 0)
        attempts.begin("v", "host", 0)
    assert not attempts.begin("u", "elsewhere", 0)
    own = [attempts.begin("u", "host", 0) for _ in range(FAILURES_PER_SOURCE_MAX + 1)]
    assert [attempt is not None for attempt in own][-2:] == [True, False]


def test_the_known_users_are_bounded() -> None:
    attempts = Attempts()
    for number in range(KNOWN_MAX + 1):
        logged_in(attempts, str(number))
    assert [attempts.is_known(str(number), "host") for number in (0, 1, KNOWN_MAX)] == [False, True, True]
