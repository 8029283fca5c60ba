"""The partitions that one fetcher copies: the fetched ones, the changes for the next request, and the pauses. Pure.

Laws
    RF1 A response is used for a partition only if the request was sent in the partition's present leader epoch.
    RF3 A partition whose fetch failed is left out for a pause, each time twice as long, until a fetch succeeds or the
        partition is followed in another leader epoch.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.state import Role
from rota.coordinator.replication.fetch_session import Key

PAUSE_MS_MIN: Final = 20


class FetchStates:
    """`pause_ms_max` is replica.fetch.backoff.ms."""

    __slots__ = (
        "_caught_up",
        "_changed",
        "_first_request",
        "_leader_epochs",
        "_partitions",
        "_pause_ms",
        "_pause_ms_max",
        "_paused",
        "_removed",
    )

    def __init__(self, pause_ms_max: int) -> None:
        self._pause_ms_max = max(pause_ms_max, PAUSE_MS_MIN)
        self._partitions: dict[Key, Partition] = {}
        self._changed: dict[Key, None] = {}  # to be named in the next request, in that order
        self._removed: dict[Key, None] = {}
        self._first_request: dict[Key, int] = {}  # number of the first request whose answer counts
        self._leader_epochs: dict[Key, int] = {}
        self._caught_up: set[Key] = set()  # those that had everything that is committed, at the last answer
        self._paused: set[Key] = set()
        self._pause_ms: dict[Key, int] = {}  # the last pause of what has not succeeded since

    def __len__(self) -> int:
        return len(self._partitions)

    def __contains__(self, key: Key) -> bool:
        return key in self._partitions

    @property
    def has_active(self) -> bool:
        """Whether any partition is to be fetched now."""
        return len(self._partitions) > len(self._paused)

    @property
    def has_changes(self) -> bool:
        """Whether the next request has changes of the session."""
        return bool(self._changed or self._removed)

    def follow(self, partition: Partition, request: int) -> bool:
        """Copy that partition; answers count from request number `request` on. False if it is followed so already."""
        key = (partition.topic_id, partition.index)
        if self._partitions.get(key) is partition and self._leader_epochs[key] == partition.leader_epoch:
            return False
        self._partitions[key], self._leader_epochs[key] = partition, partition.leader_epoch
        self._first_request[key] = request
        self._caught_up.discard(key)
        self._pause_ms.pop(key, None)
        self.resume(key)
        return True

    def unfollow(self, key: Key) -> None:
        """Copy it no longer."""
        if self._partitions.pop(key, None) is not None:
            del self._first_request[key], self._leader_epochs[key]
            self._pause_ms.pop(key, None)
            self._paused.discard(key)
            self._caught_up.discard(key)
            self._leave_out(key)

    def answered(self, key: Key, request: int) -> Partition | None:
        """Return the partition for which the answer to that request counts."""
        if key in self._paused or self._first_request.get(key, 0) > request:
            return None
        partition = self._partitions.get(key)
        return partition if partition is not None and _follows(partition) else None

    def add_to_request(self, key: Key) -> None:
        """Name the partition in the next request: its position has changed."""
        if key in self._partitions:
            self._changed[key] = None
            self._removed.pop(key, None)

    def succeeded(self, key: Key) -> None:
        """A fetch went well: the next pause is a short one."""
        if self._pause_ms:
            self._pause_ms.pop(key, None)

    def pause(self, key: Key) -> int:
        """Leave the partition out, and return for how many ms; `resume` ends it."""
        last_ms = self._pause_ms.get(key)
        pause_ms = PAUSE_MS_MIN if last_ms is None else min(2 * last_ms, self._pause_ms_max)
        self._pause_ms[key] = pause_ms
        self._paused.add(key)
        self._leave_out(key)
        return pause_ms

    def hold_back(self, key: Key) -> None:
        """Leave the partition out until `resume`: it is throttled."""
        self._paused.add(key)
        self._leave_out(key)

    def note_lag(self, key: Key, lag: int) -> None:
        """The replica has `lag` fewer records than are committed."""
        if lag > 0:
            self._caught_up.discard(key)
        elif key in self._partitions:
            self._caught_up.add(key)

    def lagging(self) -> list[tuple[Key, Partition]]:
        """Return the partitions of the next request that are not known to have everything that is committed."""
        return [(key, self._partitions[key]) for key in self._changed if key not in self._caught_up]

    def resume(self, key: Key) -> None:
        """The pause is over."""
        self._paused.discard(key)
        self.add_to_request(key)

    def unfetchable(self) -> list[Key]:
        """Return the active partitions of the next request that can not be fetched: offline, or led here by now."""
        return [key for key in self._changed if not _follows(self._partitions[key])]

    def all_active(self) -> dict[Key, Partition]:
        """Return the partitions of a full request, and clear the changes."""
        self._changed, self._removed = {}, {}
        return {key: partition for key, partition in self._partitions.items() if key not in self._paused}

    def take_changes(self) -> tuple[dict[Key, Partition], list[Key]]:
        """Return the partitions of an incremental request, and those to remove from the session; clear the changes."""
        changed, removed = {key: self._partitions[key] for key in self._changed}, list(self._removed)
        self._changed, self._removed = {}, {}
        return changed, removed

    def begin_anew(self) -> None:
        """The session is lost: every active partition has to be named."""
        for key in self._partitions:
            if key not in self._paused:
                self._changed[key] = None
        self._removed = {}

    def _leave_out(self, key: Key) -> None:
        self._changed.pop(key, None)
        self._removed[key] = None


def _follows(partition: Partition) -> bool:
    return partition.offline is None and partition.state.role is Role.FOLLOWER
