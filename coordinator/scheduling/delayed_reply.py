"""A reply that is not known yet.

Law
    G4  Every request that waits is answered exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class DelayedReply(Generic[T]):
    """A reply that will be given later. `mutes` holds back the connection's next request, as Kafka does.

    A request that waits for others (JoinGroup, SyncGroup, a delayed Fetch) mutes; a request that waits only for its own
    record to become durable (OffsetCommit, Produce) does not, so that pipelined commits share a write.
    """

    __slots__ = ("_abandoned", "_expedited", "_shape", "_then", "answered", "mutes", "value")

    def __init__(self, *, mutes: bool = False) -> None:
        self.mutes = mutes
        self.answered = False
        self.value: T | None = None
        self._then: Callable[[T], None] | None = None
        self._shape: Callable[[Any], T] | None = None  # applied to what `answer` is given
        self._abandoned: Callable[[], object] | None = None
        self._expedited: Callable[[], None] | None = None

    def answer(self, value: T) -> None:
        """Answer the reply. A second answer is a bug."""
        assert not self.answered, "a request was answered twice"
        shape, then = self._shape, self._then
        if shape is not None:
            value = shaped_or_mistake(shape, value)
        self.answered, self.value = True, value
        self._abandoned = self._expedited = self._shape = self._then = None
        if then is not None:
            then(value)

    def then(self, call: Callable[[T], None]) -> None:
        """Call `call` with the reply: now if there is one, else when it is given."""
        if self.answered:
            assert self.value is not None
            call(self.value)
        else:
            self._then = call

    def result(self) -> T | None:
        """Return the answered reply. Raises the exception of its map."""
        if isinstance(self.value, Exception):
            raise self.value
        return self.value

    def map(self, shape: Callable[[T], U]) -> DelayedReply[U]:
        """Convert the reply by `shape` when it is given (a group's body to a wire message), before `then`.

        Several shapes are applied in the order of the calls.
        """
        assert self._then is None, "it may have been answered already"
        shaped, earlier = cast("DelayedReply[U]", self), self._shape
        if self.answered:
            shaped.value = shaped_or_mistake(shape, cast(T, self.value))
        elif earlier is None:
            shaped._shape = shape
        else:
            shaped._shape = lambda value: shape(earlier(value))
        return shaped

    def on_abandon(self, call: Callable[[], object]) -> None:
        """Call `call` if the peer disconnects before the reply is given."""
        self._abandoned = call

    def abandon(self) -> bool:
        """The peer disconnected: the reply will not be sent. Return whether it is given up; else it is still answered,
        as what it waits for goes on."""
        if self._abandoned is None:
            return False
        call, self._abandoned = self._abandoned, None
        call()
        return True

    def on_expedite(self, call: Callable[[], None]) -> None:
        """Call `call` if a request that is urgent has to wait for this reply: it may be given before its time."""
        self._expedited = call

    def expedite(self) -> None:
        """A request that is urgent waits for this reply."""
        if self._expedited is not None:
            call, self._expedited = self._expedited, None
            call()


U = TypeVar("U")


def shaped_or_mistake(shape: Callable[[T], U], value: T) -> U:
    """Return `shape(value)`, or the exception that it raised: the sender of the reply closes its connection for it.

    A value that is an exception already stays what it is.
    """
    if isinstance(value, Exception):
        return cast(U, value)
    try:
        return shape(value)
    except Exception as mistake:  # noqa: BLE001  # raised where the reply is sent
        return cast(U, mistake)


def all_of(replies: Iterable[T | DelayedReply[T]]) -> DelayedReply[list[T]]:
    """Return the reply of all these replies, in their order, given when the last of them is given."""
    started, whole = list(replies), DelayedReply[list[T]]()
    waiting = [reply for reply in started if isinstance(reply, DelayedReply) and not reply.answered]
    left = len(waiting)

    def answered(_: T) -> None:
        nonlocal left
        left -= 1
        if not left:
            whole.answer(values())

    def values() -> list[T]:
        return [cast(T, reply.value) if isinstance(reply, DelayedReply) else reply for reply in started]

    for reply in waiting:
        reply.then(answered)
    if not waiting:
        whole.answer(values())
    return whole


def gather(parts: Sequence[T | DelayedReply[T]], whole: Callable[[list[T]], U]) -> U | DelayedReply[U]:
    """Return `whole` of the parts: at once when all of them are known, else a reply that waits for the last one."""
    if not any(isinstance(part, DelayedReply) for part in parts):
        return whole(cast(list[T], list(parts)))
    return all_of(parts).map(whole)
