"""`rota sniff` between real clients and both brokers."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from tests.cli.kit import Rota


class Sniffer:
    """The proxy as a process; a thread reads what it prints, so that it never waits for its reader."""

    def __init__(self, cli: Rota, *arguments: str) -> None:
        command = [sys.executable, "-m", "rota", "sniff", *arguments, "--json", "--bootstrap-server", cli.address]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self._lines: list[str] = []
        self._stream = self.process.stdout
        first = json.loads(self._stream.readline())
        assert (first["event"], first["broker"]) == ("listening", cli.address)
        self.address: str = first["listen"]
        self._reader = Thread(target=lambda: self._lines.extend(self._stream))
        self._reader.start()

    def printed(self) -> list[dict[str, Any]]:
        """Stop the proxy as Ctrl-C does; return what it printed."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(60) == 130
        assert self.process.stderr is not None
        assert self.process.stderr.read() == ""
        self._reader.join()
        return [json.loads(line) for line in self._lines]

    def close(self) -> None:
        self.process.kill()
        self._reader.join()
        self.process.communicate()


@contextmanager
def sniffing(cli: Rota, *arguments: str) -> Iterator[Sniffer]:
    sniffer = Sniffer(cli, *arguments)
    try:
        yield sniffer
    finally:
        sniffer.close()


def test_a_group_works_through_the_proxy_and_every_message_is_decoded(
    cli: Rota, topic: str, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.create(topic, 2)
    with sniffing(cli) as sniffer:
        proxied = Rota(sniffer.address, capsys)
        proxied.produce(topic, [b"1", b"2"])
        assert proxied("consume", topic, "--group", group, "--from", "earliest", "--max", "2").out == "1\n2\n"
        assert proxied.json("groups", "lag", group)["groups"][0]["lag"] == 0
        (broker,) = proxied.json("cluster")["brokers"]
        assert f"{broker['host']}:{broker['port']}" == sniffer.address
        found = sniffer.printed()
    messages = [each for each in found if "api" in each]
    assert not [each for each in messages if "undecoded" in each]
    names = {each["api"] for each in messages}
    assert names >= {"ApiVersions", "Metadata", "Produce", "Fetch", "FindCoordinator", "JoinGroup", "SyncGroup"}
    (join, *_) = [each for each in messages if each["api"] == "JoinGroup" and each["kind"] == "request"]
    assert join["body"]["protocols"][0]["metadata"]["topics"] == [topic]
    assert join["groups"] == [group]
    responses = [each for each in messages if each["kind"] == "response"]
    assert all(each["duration_ms"] >= 0 for each in responses)


def test_filters_leave_out_the_rest(cli: Rota, topic: str, group: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.create(topic)
    cli.commit(group, topic, {0: 0})
    with sniffing(cli, "--group", group, "--api", "OffsetFetch", "--no-bodies") as sniffer:
        Rota(sniffer.address, capsys).json("groups", "lag", group)
        found = sniffer.printed()
    messages = [each for each in found if "api" in each]
    assert {each["api"] for each in messages} == {"OffsetFetch"}
    assert not [each for each in messages if "body" in each]


def test_it_ends_after_so_many_messages(cli: Rota, capsys: pytest.CaptureFixture[str]) -> None:
    with sniffing(cli, "--max", "2") as sniffer:
        host, _, port = sniffer.address.rpartition(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(bytes.fromhex("0000000b0012000000000007000178"))
            assert len(client.recv(4)) == 4
            assert sniffer.process.wait(60) == 0


def test_a_client_of_another_protocol_is_named_and_closed(cli: Rota) -> None:
    with sniffing(cli) as sniffer:
        host, _, port = sniffer.address.rpartition(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.recv(100) == b""
        (note,) = [each for each in sniffer.printed() if each["event"] == "note"]
    assert "no request of Kafka's protocol" in note["text"]


def test_a_port_in_use_is_refused(cli: Rota) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = cli.fails("sniff", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert refused.code == 2
    assert "name another --listen" in refused.err
