"""N13: the limit on open files, and how many connections it allows."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rota.coordinator.log.store import OPEN_FILES_MAX, UNSYNCED_FILES_MAX
from rota.coordinator.network.open_files import (
    RESERVED_FILES,
    connections_max,
    console_files,
    open_files_limit,
    raise_open_files_limit,
)


@contextmanager
def open_files(limit: int) -> Iterator[None]:
    """This process may open files up to that number within the block."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_is_raised_to_the_highest_one_that_is_allowed() -> None:
    with open_files(200):
        assert open_files_limit() == 200
        raise_open_files_limit()
        assert open_files_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        raise_open_files_limit()
        assert open_files_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[1]


@pytest.mark.parametrize(("soft", "raised"), [(256, 10_240), (20_000, 20_000)])
def test_macos_has_no_highest_limit_and_refuses_one_that_is_too_high(
    monkeypatch: pytest.MonkeyPatch, soft: int, raised: int
) -> None:
    limits = [soft, resource.RLIM_INFINITY]

    def set_limit(_: int, wanted: tuple[int, int]) -> None:
        if not 0 <= wanted[0] <= 10_240:
            raise ValueError("current limit exceeds maximum limit")
        limits[:] = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", set_limit)
    raise_open_files_limit()
    assert limits == [raised, resource.RLIM_INFINITY]


@pytest.mark.parametrize(("limit", "allowed"), [(1_048_576, 1_048_320), (256, 192), (40, 30), (0, 0)])
def test_logs_keep_a_part_of_the_open_files(limit: int, allowed: int) -> None:
    assert connections_max(limit) == allowed


@pytest.mark.parametrize(("has_tls", "limit", "allowed"), [(False, 512, 256), (False, 1024, 640), (True, 1024, 384)])
def test_logs_keep_their_part_beside_a_console_that_is_crowded(has_tls: bool, limit: int, allowed: int) -> None:
    console = console_files(is_open=True, has_tls=has_tls)
    assert connections_max(limit, console) == allowed
    assert limit - allowed - console >= 128


def test_n13_what_is_left_to_the_logs_is_what_they_may_have_open() -> None:
    """A sync duplicates the descriptor of its file. The journal, listeners, folders and the event loop have theirs."""
    assert OPEN_FILES_MAX + 2 * UNSYNCED_FILES_MAX + 64 <= RESERVED_FILES


@pytest.mark.parametrize(("limit", "logs", "allowed"), [(1024, 300, 468), (1024, 1000, 256), (200, 100, 50)])
def test_n13_each_log_keeps_a_file_open(limit: int, logs: int, allowed: int) -> None:
    assert connections_max(limit, logs=logs) == allowed
    assert connections_max(resource.RLIM_INFINITY, logs=logs) == connections_max(resource.RLIM_INFINITY)


def test_without_a_limit_there_are_as_many_connections_as_come() -> None:
    assert connections_max(resource.RLIM_INFINITY) == 2_147_483_647
