"""The failure detector's socket and timer: it sends and receives the datagrams of `swim`.

    async with SwimService(1, settings, secret, on_change, now_ms) as swim:
        swim.members_changed({1: (epoch, swim.address), 2: (epoch, ("host", port))})

It runs on the broker's own event loop: a broker whose loop stands still answers no ping, as it should.

Laws
    FD15 The name of a broker that does not answer is resolved again: its IP address may have changed without a new
         registration. A name that does not resolve, or hangs, whatever it is, concerns no other broker.
    FD17 A datagram that the system refuses to send, for a firewall or a network that is down, costs no other one; nor
         does an address to which this socket cannot send at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Final, Self

import asyncio_dgram

from rota.coordinator.membership.contract import (
    Address,
    Change,
    Effects,
    RandomSource,
    Send,
    Suspected,
    SwimSettings,
)
from rota.coordinator.membership.names import resolve
from rota.coordinator.membership.swim import Swim

UNSENT_MAX: Final = 1000  # datagrams that wait for the socket; the oldest are dropped
RESOLVE_RETRY_S: Final = 1.0  # between two attempts to resolve the names of brokers
RESOLVING_MAX: Final = 32  # threads that resolve names: one that hangs keeps one of them
ANY_HOST: Final = "0.0.0.0"
PORT_MAX: Final = 0xFFFF

OnChange = Callable[[Change], None]
Registrations = Mapping[int, tuple[int, Address]]


class SwimService:
    """The failure detector of broker `node_id` on UDP `host`:`port`; port 0 is any free one.

    `on_change` is called on the event loop with Suspected, Dead and Alive. `now_ms` is elapsed time. Call the methods
    from the event loop.
    """

    def __init__(
        self,
        node_id: int,
        settings: SwimSettings,
        secret: bytes,
        on_change: OnChange,
        now_ms: Callable[[], int],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        random: RandomSource | None = None,
    ) -> None:
        self.swim = Swim(node_id, settings, secret, random or Random())
        self.address: Address = (host or ANY_HOST, port)
        self._on_change, self._now_ms = on_change, now_ms
        self._stream: asyncio_dgram.DatagramServer | None = None
        self._unsent: deque[Send] = deque(maxlen=UNSENT_MAX)
        self._has_unsent = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_ms: int | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._registrations: Registrations = {}
        self._resolved: dict[tuple[int, int], Address] = {}  # (broker id, epoch) -> numeric address
        self._resolving: dict[tuple[int, int], asyncio.Task[None]] = {}
        self._resolve_slots = asyncio.Semaphore(RESOLVING_MAX)
        self._has_names = asyncio.Event()

    async def start(self) -> Address:
        """Bind the socket; return its address. Raises OSError."""
        self._stream = stream = await asyncio_dgram.bind(self.address)
        self.address = _address(stream.sockname)
        work = (self._receive(stream), self._transmit(stream), self._resolve(stream.socket.family))
        self._tasks = [asyncio.create_task(each) for each in work]
        for task in self._tasks:
            task.add_done_callback(_report_failure)
        self._wake_in_time()
        return self.address

    async def stop(self) -> None:
        """Close the socket. Nothing is reported any more."""
        self._set_timer(None)
        work = [*self._tasks, *self._resolving.values()]
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        self._tasks = []
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def members_changed(self, registrations: Registrations) -> None:
        """Set the registered brokers, this one among them: broker id -> (epoch, (host or IP address, port)).

        A broker whose name is not resolved yet is not pinged. The name is resolved for each registration, and again
        while the broker does not answer: a container that is restarted, or whose network is connected again, may have
        another IP address (FD15).
        """
        self._registrations = dict(registrations)
        lives = {(broker_id, epoch) for broker_id, (epoch, _) in registrations.items()}
        self._resolved = {life: address for life, address in self._resolved.items() if life in lives}
        for broker_id, (epoch, (host, port)) in registrations.items():
            if broker_id == self.swim.node_id or _is_numeric(host):
                self._resolved[broker_id, epoch] = (host, port)
        self._apply_registrations()
        self._has_names.set()

    def accuse(self, broker_id: int) -> None:
        """Tell that a connection to this broker broke or was refused: it is pinged at once."""
        self._perform(self.swim.accuse(broker_id, self._now_ms()))

    def ping_dead(self) -> None:
        """Ping the brokers that were declared dead at once: this node was perhaps cut off from them."""
        self._perform(self.swim.ping_dead(self._now_ms()))

    # ---- effects and time

    def _perform(self, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._unsent.append(effect)
                self._has_unsent.set()
            else:
                self._report(effect)
        self._wake_in_time()

    def _report(self, change: Change) -> None:
        if isinstance(change, Suspected):
            self._has_names.set()
        try:
            self._on_change(change)
        except Exception as error:  # noqa: BLE001  # a listener that fails must not stop the pings
            asyncio.get_running_loop().call_exception_handler({"message": f"after {change}", "exception": error})

    def _wake_in_time(self) -> None:
        """Set the timer if it would be late. One that is early finds nothing to do and is set again."""
        deadline_ms = self.swim.next_deadline_ms
        if self._stream is None or deadline_ms is None:
            return
        if self._wakes_ms is None or deadline_ms < self._wakes_ms:
            self._set_timer(deadline_ms)

    def _set_timer(self, at_ms: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._wakes_ms = None, at_ms
        if at_ms is not None:
            delay_s = max(at_ms - self._now_ms(), 0) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self._timer = self._wakes_ms = None
        self._perform(self.swim.tick(self._now_ms()))

    # ---- the socket

    async def _receive(self, stream: asyncio_dgram.DatagramServer) -> None:
        while True:
            with contextlib.suppress(OSError):  # of an earlier datagram: an unreachable network
                datagram, source = await stream.recv()
                self._perform(self.swim.received(datagram, _address(source), self._now_ms()))

    async def _transmit(self, stream: asyncio_dgram.DatagramServer) -> None:
        family = stream.socket.family
        while True:
            await self._has_unsent.wait()
            self._has_unsent.clear()
            while self._unsent:
                send = self._unsent.popleft()
                if not _is_of(family, send.address):
                    continue
                while not _is_free_of_errors(stream):
                    continue  # an earlier datagram could not be sent: this one is not lost with it (FD17)
                await stream.send(send.datagram, send.address)

    # ---- names

    def _apply_registrations(self) -> None:
        resolved = {
            broker_id: (epoch, self._resolved[broker_id, epoch])
            for broker_id, (epoch, _) in self._registrations.items()
            if (broker_id, epoch) in self._resolved
        }
        self._perform(self.swim.members_changed(resolved, self._now_ms()))

    def _unresolved(self) -> Iterable[tuple[int, int, Address]]:
        """The brokers whose names have no address yet, or one that perhaps is not theirs any more."""
        for broker_id, (epoch, address) in list(self._registrations.items()):
            is_known = (broker_id, epoch) in self._resolved
            if not is_known or (self.swim.is_doubtful(broker_id, epoch) and not _is_numeric(address[0])):
                yield broker_id, epoch, address

    async def _resolve(self, family: int) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                waits_s = RESOLVE_RETRY_S if any(self._unresolved()) else None
                await asyncio.wait_for(self._has_names.wait(), waits_s)
            self._has_names.clear()
            for broker_id, epoch, address in self._unresolved():
                if (broker_id, epoch) not in self._resolving:
                    resolving = asyncio.create_task(self._resolve_one(broker_id, epoch, address, family))
                    self._resolving[broker_id, epoch] = resolving
                    resolving.add_done_callback(_report_failure)

    async def _resolve_one(self, broker_id: int, epoch: int, address: Address, family: int) -> None:
        host, port = address
        try:
            async with self._resolve_slots:
                found = await resolve(host, port, family)
            self._is_at(broker_id, epoch, (found, port))
        except (OSError, UnicodeError):  # the latter for what can be no name
            return
        finally:
            del self._resolving[broker_id, epoch]

    def _is_at(self, broker_id: int, epoch: int, address: Address) -> None:
        if self._resolved.get((broker_id, epoch)) != address:
            self._resolved[broker_id, epoch] = address
            self._apply_registrations()


def _is_of(family: int, address: Address) -> bool:
    """Whether the address is one of that family. For another one, or a wrong port, asyncio closes the socket (FD17)."""
    host, port = address
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        return False
    return version == (6 if family == socket.AF_INET6 else 4) and 0 < port <= PORT_MAX


def _is_free_of_errors(stream: asyncio_dgram.DatagramServer) -> bool:
    """Forget the first error that the stream would raise in place of its next call; False if there was one."""
    try:
        return stream.exception is None
    except OSError:
        return False


def _address(name: Any) -> Address:
    """The address of a socket; for IPv6 the operating system's has more fields."""
    return str(name[0]), int(name[1])


def _report_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        context = {"message": "the failure detector stopped: only ZooKeeper's sessions detect failed brokers now"}
        asyncio.get_running_loop().call_exception_handler({**context, "exception": error})


def _is_numeric(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
