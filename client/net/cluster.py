"""The brokers of a cluster: who they are, who leads what, and how each is asked.

Laws
    One connection per broker and purpose; dialled when it is first needed, dialled again with a growing wait.
    Metadata is one immutable value that is replaced as a whole; leader epochs in it never go back (KIP-320).
    Every call ends by its deadline; a call that is cancelled leaves the connection usable for everybody else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from rota.client.config import ClientConfig
from rota.client.net.metadata import Metadata
from rota.client.net.targets import Target

T = TypeVar("T")
Codes = Callable[[Any], Iterable[int]]  # the error codes in an answer


class Cluster:
    """`await cluster.start()`, ask, `await cluster.close()`. Belongs to the loop on which it was started."""

    def __init__(self, config: ClientConfig) -> None:
        raise NotImplementedError

    @property
    def metadata(self) -> Metadata:
        """What is known now."""
        raise NotImplementedError

    async def start(self) -> None:
        """Reach one bootstrap server and read metadata. Raises Unreachable after default_api_timeout_ms, naming each
        address and why it failed."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close every connection; who waits for an answer gets Unreachable."""
        raise NotImplementedError

    # one attempt

    async def ask(
        self,
        node: int,
        request: Any,
        *,
        timeout_ms: int | None = None,
        version_max: int | None = None,
        version_min: int = 0,
        lane: str = "",
    ) -> Any:
        """The response dataclass of one request to that node, in the newest version that both sides know.

        `lane` names a connection of its own (Fetch waits on the broker and must not hold up heartbeats: lanes "",
        "fetch", "group"). `timeout_ms` defaults to request_timeout_ms. Raises Unreachable, TimedOut (the connection is
        given up), Unsupported. A ProduceRequest with acks=0 has no answer: None at once when it is written.
        """
        raise NotImplementedError

    async def version(self, node: int, key: int) -> int:
        """The version in which `ask` would ask that node this API. Raises Unsupported, Unreachable, TimedOut."""
        raise NotImplementedError

    # until it worked

    async def ask_until(
        self,
        target: Target,
        request: Any | Callable[[int], Any],
        codes: Codes,
        *,
        what: str,
        timeout_ms: int | None = None,
        version_max: int | None = None,
        version_min: int = 0,
        lane: str = "",
    ) -> Any:
        """Ask the target again and again until no code in the answer calls for another try (verdicts.py).

        `target`: AnyNode(), Node(3), Controller(), Coordinator("group"), Leader(partition). A callable `request` makes a
        fresh request for the node that is asked. REFRESH verdicts read metadata first, REDISCOVER ones look for
        the coordinator anew, with backoff in between. A FATAL code is left in the answer: the caller raises what fits.
        `timeout_ms` defaults to default_api_timeout_ms; then the last failure is raised, as TimedOut with its cause, or
        the answer with its last code is given back when there was one. `what` ("committing offsets") is for messages.
        """
        raise NotImplementedError

    async def coordinator(self, group: str, *, timeout_ms: int | None = None) -> int:
        """The node that coordinates the group: asked once, remembered. Raises TimedOut, BrokerError."""
        raise NotImplementedError

    def coordinator_moved(self, group: str, node: int) -> None:
        """`node` said that it is not the coordinator, or is gone: the next `coordinator` asks."""
        raise NotImplementedError

    # metadata

    def want(self, topics: Iterable[str] | None) -> None:
        """Which topics this client keeps itself informed of; None: all of them (a pattern). Replaces the last wish."""
        raise NotImplementedError

    async def refresh(self, *, timeout_ms: int | None = None) -> Metadata:
        """Ask for metadata now; calls that come meanwhile share the answer to the next request."""
        raise NotImplementedError

    def stale(self) -> None:
        """Something was not where the metadata says: ask again soon, in the background, with backoff."""
        raise NotImplementedError

    async def until(self, look: Callable[[Metadata], T | None], *, what: str, timeout_ms: int | None = None) -> T:
        """The first non-None thing that `look` finds in the metadata, refreshed with backoff until the timeout.

        Raises TimedOut that says `what` and the last error that the brokers gave for wanted topics.
        """
        raise NotImplementedError

    def on_change(self, told: Callable[[Metadata], None]) -> Callable[[], None]:
        """`told(metadata)` after each answer that differs from what was known. Returns what ends it."""
        raise NotImplementedError

    def background(self, work: Awaitable[Any], name: str) -> None:
        """A task that lives as long as the cluster; a failure in it is logged and ends it alone."""
        raise NotImplementedError
