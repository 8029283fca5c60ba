"""Runs commands in this process and returns what they printed; makes topics and groups for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any

import pytest
from tests.interop.kit import PATIENCE_S

from rota.cli.main import run
from rota.client import (
    Admin,
    AdminConfig,
    Consumer,
    ConsumerConfig,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    ProducerConfig,
    TopicPartition,
)


@dataclass
class Printed:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Rota:
    """`cli("topics", "list")` runs `rota topics list --bootstrap-server …`."""

    def __init__(self, address: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.address = address
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Printed:
        self._capsys.readouterr()
        code = run([*arguments, "--bootstrap-server", self.address])
        printed = self._capsys.readouterr()
        return Printed(code, printed.out, printed.err)

    def json(self, *arguments: str) -> Any:
        """Return the document that the command prints with --json; the exit code is 0."""
        done = self(*arguments, "--json")
        assert (done.code, done.err) == (0, "")
        return json.loads(done.out)

    def json_lines(self, *arguments: str) -> list[Any]:
        """Return the objects that the command prints with --json; the exit code is 0."""
        done = self(*arguments, "--json")
        assert done.code == 0, done.err
        return [json.loads(line) for line in done.lines]

    def fails(self, *arguments: str) -> Printed:
        """Run a command that fails; it prints nothing on standard output."""
        done = self(*arguments)
        assert done.code != 0
        assert done.out == ""
        return done

    # what commands look at

    def create(self, topic: str, partitions: int = 1, **configs: str) -> str:
        new = NewTopic(topic, partitions, 1, configs={name.replace("_", "."): value for name, value in configs.items()})
        self.admin(lambda admin: admin.create_topics([new]))
        return topic

    def produce(self, topic: str, values: list[bytes], partition: int = 0, timestamp: int | None = None) -> None:
        async def send() -> None:
            async with Producer(ProducerConfig(bootstrap_servers=self.address)) as producer:
                for value in values:
                    await producer.send(topic, value, partition=partition, timestamp_ms=timestamp)

        asyncio.run(send())

    def commit(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        committed = {TopicPartition(topic, number): OffsetAndMetadata(offset) for number, offset in offsets.items()}
        self.admin(lambda admin: admin.alter_group_offsets(group, committed))

    def admin(self, call: Callable[[Admin], Awaitable[Any]]) -> Any:
        async def run_call() -> Any:
            async with Admin(AdminConfig(bootstrap_servers=self.address)) as admin:
                return await call(admin)

        return asyncio.run(run_call())

    @contextmanager
    def member(self, group: str, topic: str, **settings: Any) -> Iterator[Consumer]:
        """Run a consumer, which has its assignment, in a thread of its own."""
        given = ConsumerConfig(bootstrap_servers=self.address, group_id=group, enable_auto_commit=False, **settings)
        loop = asyncio.new_event_loop()
        thread = Thread(target=loop.run_forever)
        thread.start()

        async def start() -> tuple[Consumer, asyncio.Task[None]]:
            consumer = Consumer(given)
            await consumer.start()
            consumer.subscribe([topic])
            while not consumer.assignment:
                await consumer.getmany(timeout_ms=100)
            return consumer, asyncio.create_task(poll(consumer))

        async def poll(consumer: Consumer) -> None:
            while True:
                await consumer.getmany(timeout_ms=100)

        async def stop(consumer: Consumer, polling: asyncio.Task[None]) -> None:
            polling.cancel()
            await asyncio.wait([polling])
            await consumer.close()

        try:
            consumer, polling = asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE_S)
            try:
                yield consumer
            finally:
                asyncio.run_coroutine_threadsafe(stop(consumer, polling), loop).result(PATIENCE_S)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(PATIENCE_S)
            loop.close()
