"""The scenario: a book is produced; a group of one member grows, loses a member to a crash, and reads to the end; the
broker is killed and started again; every line was read, and every committed offset is still there.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TextIO

from rota.client import (
    LATEST,
    Admin,
    AdminConfig,
    NewTopic,
    Producer,
    ProducerConfig,
    TopicPartition,
)
from rota.demo.member import CLIENTS, installed_clients
from rota.demo.processes import Broker, Member, start_member
from rota.demo.screen import LineScreen, Screen, State
from rota.demo.text import lines

TOPIC, GROUP, PARTITIONS = "lines", "readers", 6
MEMBERS_MIN = 3
CHAPTER_S_MAX = 60.0
POLL_S = 0.1
READ_BEFORE_CRASH = 100


class ScenarioFailed(Exception):
    """A chapter did not reach its end in time, or a record or a committed offset is missing."""


class Scenario:
    """One run of the demo in `folder`, with members that use `clients`."""

    def __init__(self, folder: Path, screen: Screen, clients: list[str]) -> None:
        self.screen, self.clients = screen, clients
        self.state = State()
        self.broker = Broker(folder, self.state.events)
        self.text = lines()

    async def run(self) -> None:
        """Raises ScenarioFailed."""
        self.announce("Starting the broker")
        started = time.monotonic()
        self.broker.start()
        self.announce(f"The broker listens on {self.broker.address} after {(time.monotonic() - started) * 1000:.0f} ms")
        async with self.admin() as admin:
            await admin.create_topics([NewTopic(TOPIC, PARTITIONS)])
            await self.produce()
            self.announce(f"{len(self.text):,} lines of a book are in {PARTITIONS} partitions")
            self.add_members(1)
            await self.wait_until("One member reads all partitions", admin, lambda: self.is_shared_by(1))
            self.add_members(len(self.clients))
            await self.wait_until(
                "More members join and share the partitions",
                admin,
                self.is_ready_for_crash,
                self.produce_if_all_is_read,
            )
            self.state.members[1].stop(signal.SIGKILL, "killed (SIGKILL)")
            survivors = len(self.clients) - 1
            await self.wait_until(
                "A member was killed: its session times out and the others take over its partitions",
                admin,
                lambda: self.is_shared_by(survivors),
            )
            await self.wait_until("The group reads to the end", admin, lambda: self.state.lag() == 0)
        self.stop_members()
        await self.restart_broker()
        if self.missing_records():
            raise ScenarioFailed(f"{self.missing_records()} of {len(self.text)} lines were read by no member")

    async def produce(self) -> None:
        """Produce the lines of the book."""
        config = ProducerConfig(bootstrap_servers=self.broker.address, compression_type="lz4")
        async with Producer(config) as producer:
            for number, line in enumerate(self.text):
                await producer.send(TOPIC, line.encode(), str(number).encode())
            await producer.flush()

    async def produce_if_all_is_read(self) -> None:
        """Produce the lines once more if the group has read them all: on a slow machine later members found none."""
        if self.state.lag() == 0:
            await self.produce()

    def add_members(self, count: int) -> None:
        """Start members until there are `count`."""
        for position in range(len(self.state.members), count):
            client, name = self.clients[position], member_name(self.clients, position)
            self.state.members.append(start_member(client, name, self.broker.address, TOPIC, GROUP))

    def stop_members(self) -> None:
        for member in self.state.members:
            if member.state == "consuming":
                member.stop(signal.SIGTERM, "left the group")

    async def restart_broker(self) -> None:
        """Kill the broker and start it again. Raises ScenarioFailed when a committed offset has changed."""
        before = dict(self.state.committed)
        self.announce("Killing the broker (SIGKILL) and starting it again on the same data")
        self.broker.stop(signal.SIGKILL)
        self.broker.start()
        async with self.admin() as admin:
            await self.read_offsets(admin)
        if self.state.committed != before:
            raise ScenarioFailed(f"the restart changed committed offsets: {before} became {self.state.committed}")
        self.announce("The broker is back; every committed offset is there")

    def admin(self) -> Admin:
        return Admin(AdminConfig(bootstrap_servers=self.broker.address))

    async def read_offsets(self, admin: Admin) -> None:
        """Update the ends of the partitions and the offsets that the group has committed."""
        partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        ends = await admin.list_offsets(dict.fromkeys(partitions, LATEST))
        committed = (await admin.list_group_offsets({GROUP: partitions}))[GROUP]
        self.state.ends = {part.partition: end.offset for part, end in ends.items() if end is not None}
        self.state.committed = {part.partition: at.offset for part, at in committed.items() if at is not None}

    async def wait_until(
        self,
        chapter: str,
        admin: Admin,
        is_reached: Callable[[], bool],
        meanwhile: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Read the offsets, and call `meanwhile`, until `is_reached`. Raises ScenarioFailed after CHAPTER_S_MAX."""
        deadline = time.monotonic() + CHAPTER_S_MAX
        self.announce(chapter)
        while not is_reached():
            if time.monotonic() > deadline:
                raise ScenarioFailed(f"not reached within {CHAPTER_S_MAX:.0f} s: {chapter}")
            await asyncio.sleep(POLL_S)
            await self.read_offsets(admin)
            if meanwhile is not None:
                await meanwhile()
            self.screen.show(self.state)

    def announce(self, chapter: str) -> None:
        self.state.chapter = chapter
        self.screen.show(self.state)

    def is_shared_by(self, count: int) -> bool:
        """True when `count` members own all partitions, each partition once."""
        owners = [member.partitions for member in self.state.members if member.partitions]
        return len(owners) == count and sorted(chain(*owners)) == list(range(PARTITIONS))

    def is_ready_for_crash(self) -> bool:
        members = self.state.members
        return self.is_shared_by(len(members)) and all(member.records_read >= READ_BEFORE_CRASH for member in members)

    def missing_records(self) -> int:
        """Records that no member has read."""
        return sum(self.state.ends.values()) - records_read_once(self.state.members)

    def close(self) -> None:
        """Kill the members that still run and stop the broker."""
        for member in self.state.members:
            if member.process.poll() is None:
                member.stop(signal.SIGKILL, "killed (SIGKILL)")
        if self.broker.process is not None and self.broker.process.poll() is None:
            self.broker.stop()


def records_read_once(members: list[Member]) -> int:
    """Distinct records that the members have read."""
    read = {
        (partition, offset)
        for member in members
        for partition, first, last in member.ranges
        for offset in range(first, last + 1)
    }
    return len(read)


def member_name(clients: list[str], position: int) -> str:
    """The client's name, with a number from the second member of the same client on."""
    count = clients[: position + 1].count(clients[position])
    return clients[position] if count == 1 else f"{clients[position]}-{count}"


def _not_installed(absent: list[str]) -> str:
    return f" Not installed: {', '.join(absent)}. They come with: pip install 'rota[demo]'" if absent else ""


@contextmanager
def open_screen(stream: TextIO) -> Iterator[Screen]:
    """A live screen where `stream` is a terminal and rich is installed, else a LineScreen.

    The cursor stands at the beginning of a line when the block ends.
    """
    if stream.isatty():
        try:
            from rota.demo.live_screen import live_screen
        except ModuleNotFoundError:
            pass
        else:
            with live_screen(stream) as screen:
                yield screen
            return
    yield LineScreen(stream)


def main() -> None:
    """Run the demo. The exit code is 1 when a chapter failed, 130 after Ctrl-C."""
    installed = installed_clients()
    absent = [client for client in CLIENTS if client not in installed]
    clients = installed + ["rota"] * (MEMBERS_MIN - len(installed))
    print(f"Clients: {', '.join(installed)}." + _not_installed(absent), flush=True)
    started = time.monotonic()
    try:
        members = play(clients)
    except ScenarioFailed as failure:
        sys.exit(f"FAILED: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
    print(
        f"Every one of {records_read_once(members):,} lines was consumed at least once "
        f"({sum(member.records_read for member in members):,} reads by {len(members)} members),\n"
        f"and every committed offset survived the crash of the broker. {time.monotonic() - started:.0f} s."
    )


def play(clients: list[str]) -> list[Member]:
    """Run the scenario in a temporary folder. Returns its members. Raises ScenarioFailed."""
    with tempfile.TemporaryDirectory(prefix="rota-demo-") as folder, open_screen(sys.stdout) as screen:
        scenario = Scenario(Path(folder), screen, clients)
        try:
            asyncio.run(scenario.run())
        finally:
            scenario.close()
    return scenario.state.members
