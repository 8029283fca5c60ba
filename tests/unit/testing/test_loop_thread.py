"""Brokers in this process, on a thread of their own."""

from __future__ import annotations

import gc
import socket
import threading
from pathlib import Path

import pytest

from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.log.contract import StorageFailed
from rota.testing.errors import CommandRefused
from rota.testing.loop_thread import LoopThread


def test_closing_ends_the_thread_and_the_listener() -> None:
    others = set(threading.enumerate())
    thread = LoopThread()
    host, _, port = thread.bootstrap_servers.rpartition(":")
    thread.close()
    thread.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), 1).close()
    assert set(threading.enumerate()) <= others


def test_a_failed_start_is_raised_by_the_constructor(tmp_path: Path) -> None:
    thread = LoopThread(data=tmp_path)
    with pytest.raises(StorageFailed):
        LoopThread(data=tmp_path)
    thread.close()


def test_a_refused_command_is_raised_here() -> None:
    thread = LoopThread()
    with pytest.raises(CommandRefused, match="unknown command 'fly'"):
        thread.call("fly")
    assert thread.call("info")["bootstrap_servers"] == thread.bootstrap_servers
    thread.close()


def test_refused_properties_leave_no_event_loop(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(ConfigRefused):
        LoopThread({"num.partitions": "zero"})
    gc.collect()
    assert not [each for each in recwarn if each.category is ResourceWarning]
