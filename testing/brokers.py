"""Brokers for tests: `running_broker()`, `running_cluster(3)`, and the objects that control them.

The brokers run in this process on a thread of their own, in memory, on free ports of the loopback interface. With
`own_process` they run in a process of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from rota.testing.faults import Faults
from rota.testing.groups import WITHIN_S, GroupUnderTest


class Control(Protocol):
    """Brokers in a thread or in a process."""

    bootstrap_servers: str

    def call(self, command: str, **arguments: Any) -> Any:
        """Perform a command and return its result. Raises CommandRefused."""

    def close(self) -> None:
        """Stop the brokers."""


class _Running:
    """What a broker and a cluster have in common."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.faults = Faults(control.call)

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT,... for the clients' setting of that name."""
        return self._control.bootstrap_servers

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        expire_sessions: bool = False,
    ) -> None:
        """Move the clock of the brokers ahead; what would have happened meanwhile happens now.

        Retention, compaction and the expiry of offsets run. Live members stay in their groups; members whose
        connection is closed are expired, and with `expire_sessions` all members are. Clients keep their own clocks.
        Raises ValueError, CommandRefused for a negative time and for more than ten years.
        """
        try:
            by = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        except OverflowError:
            raise ValueError("a clock advances by ten years at most") from None
        self._control.call("advance", ms=by // timedelta(milliseconds=1), expire_sessions=expire_sessions)

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic; returns when its partitions have leaders. Raises CommandRefused."""
        self._control.call("create_topic", name=name, partitions=partitions, configs=dict(configs or {}))

    def group(self, group_id: str, *, within_s: float = WITHIN_S) -> GroupUnderTest:
        """Return a consumer group, for assertions and faults. `within_s` is how long its assertions wait."""
        return GroupUnderTest(group_id, self._control.call, within_s)

    def info(self) -> dict[str, Any]:
        """The addresses and states of the brokers."""
        described: dict[str, Any] = self._control.call("info")
        return described


class RunningBroker(_Running):
    """One broker."""

    def kill(self) -> None:
        """End it as SIGKILL does: connections break, acknowledged records and commits stay."""
        self._control.call("kill")

    def stop(self) -> None:
        """Stop it in order."""
        self._control.call("stop")

    def restart(self) -> None:
        """Start it again at the same address; a running one is stopped in order first."""
        self._control.call("restart")

    def freeze(self) -> None:
        """Let it answer nothing until `thaw`; connections stay open and its time stands still."""
        self._control.call("freeze")

    def thaw(self) -> None:
        """Let it go on."""
        self._control.call("thaw")


class RunningCluster(_Running):
    """Several brokers with the ids 1, 2, … over one metadata store."""

    def kill(self, broker: int) -> None:
        """End a broker as SIGKILL does; the others elect new leaders."""
        self._control.call("kill", broker=broker)

    def stop(self, broker: int) -> None:
        """Stop a broker in order."""
        self._control.call("stop", broker=broker)

    def restart(self, broker: int) -> None:
        """Start a broker again at the same address."""
        self._control.call("restart", broker=broker)

    def freeze(self, broker: int) -> None:
        """Let a broker answer no request until `thaw`; its failure detector still answers."""
        self._control.call("freeze", broker=broker)

    def thaw(self, broker: int) -> None:
        """Let it go on."""
        self._control.call("thaw", broker=broker)

    def move_leader(self, topic: str, partition: int, broker: int) -> None:
        """Let another broker of the ISR lead a partition; returns when it does. Raises CommandRefused."""
        self._control.call("move_leader", topic=topic, partition=partition, broker=broker)

    def move_coordinator(self, group_id: str, broker: int) -> None:
        """Let another broker coordinate a group; returns when it does. Raises CommandRefused."""
        self._control.call("move_coordinator", group=group_id, broker=broker)


@contextmanager
def running_broker(
    properties: Mapping[str, str] | None = None,
    *,
    data: Path | None = None,
    own_process: bool = False,
    seed: int = 0,
) -> Iterator[RunningBroker]:
    """A broker until the block ends. `properties` have Kafka's names. `data` keeps its logs in that folder.

    `seed` draws which replies a fault with a probability applies to. Raises what the broker raises when it cannot
    start; CannotStart with `own_process`.
    """
    control = _control(properties, 1, data, own_process, seed)
    try:
        yield RunningBroker(control)
    finally:
        control.close()


@contextmanager
def running_cluster(
    count: int = 3,
    properties: Mapping[str, str] | None = None,
    *,
    data: Path | None = None,
    own_process: bool = False,
    seed: int = 0,
) -> Iterator[RunningCluster]:
    """A cluster until the block ends; see `running_broker`. Raises ValueError for fewer than 2 brokers."""
    if count < 2:
        raise ValueError("a cluster has 2 brokers or more")
    control = _control(properties, count, data, own_process, seed)
    try:
        yield RunningCluster(control)
    finally:
        control.close()


def _control(
    properties: Mapping[str, str] | None, count: int, data: Path | None, own_process: bool, seed: int
) -> Control:
    if own_process:
        from rota.testing.own_process import OwnProcess

        return OwnProcess(properties, count=count, data=data, seed=seed)
    from rota.testing.loop_thread import LoopThread

    return LoopThread(properties, count=count, data=data, seed=seed)
