"""The options of `rota sniff`; tests/cli/test_sniff.py runs it between clients and brokers."""

from __future__ import annotations

import socket
import sys
from argparse import ArgumentTypeError

import pytest

from rota.cli import main
from rota.cli.sniff import _address, _api


def test_addresses_and_apis() -> None:
    assert _address("127.0.0.1:0") == ("127.0.0.1", 0)
    assert _address("[::1]:9092") == ("::1", 9092)
    assert _api("joingroup") == _api("JoinGroup") == "joingroup"


@pytest.mark.parametrize("text", ["", "9092", ":1", "a:b", "a:70000"])
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="HOST:PORT"):
        _address(text)


def test_an_api_that_is_not_known_is_refused_with_the_nearest() -> None:
    with pytest.raises(ArgumentTypeError, match="did you mean JoinGroup"):
        _api("JoinGruop")


def test_cl3_an_output_that_cannot_be_written_is_not_an_address_that_is_in_use(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker, open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        port = broker.getsockname()[1]
        assert main.run(["sniff", "--listen", "127.0.0.1:0", "--bootstrap-server", f"127.0.0.1:{port}"]) == 1
    assert capfd.readouterr().err == "rota: standard output: No space left on device\n"
