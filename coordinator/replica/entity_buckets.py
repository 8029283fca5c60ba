"""What is measured for each user, client id or pair of both, and which quota is in force for a client. Pure.

Laws
    CQ4 Of the quotas that match a client the most specific is in force: (user, client id), (user, default client id),
        user, (default user, client id), (default user, default client id), default user, client id, default client id.
        Source: Kafka's ClientQuotaManager.
    CQ5 Clients that a quota names together share a bucket: all client ids of a user under a quota of users, all users
        of a client id under a quota of client ids. Under a default each user, client id or pair has its own.
    CQ7 There are at most BUCKETS_MAX buckets; one that was not used for `idle_ms` and that is as a new one is dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from rota.coordinator.metadata.client_quotas import CLIENT_ID, USER, Entity

BUCKETS_MAX: Final = 10_000

BucketKey = tuple[str | None, str | None]  # user, client id; None: those of all
B = TypeVar("B")


def levels(user: str, client_id: str) -> Iterator[tuple[Entity, BucketKey]]:
    """CQ4, CQ5. Yield the entities whose quota may be in force, the most specific first, with the bucket of each."""
    own, default, pair = (USER, user), (USER, None), (user, client_id)
    client, any_client = (CLIENT_ID, client_id), (CLIENT_ID, None)
    yield (client, own), pair
    yield (any_client, own), pair
    yield (own,), (user, None)
    yield (client, default), pair
    yield (any_client, default), pair
    yield (default,), (user, None)
    yield (client,), (None, client_id)
    yield (any_client,), (None, client_id)


class EntityBuckets(Generic[B]):
    """`new` makes a bucket; `is_new(bucket, limit)` says whether one that was idle can be dropped."""

    __slots__ = ("_buckets", "_idle_ms", "_is_new", "_new", "_now_ms", "at_ms", "limits")

    def __init__(
        self,
        now_ms: Callable[[], int],
        idle_ms: int,
        new: Callable[[], B],
        is_new: Callable[[B], bool] = lambda bucket: True,
    ) -> None:
        self._now_ms, self._idle_ms, self._new, self._is_new = now_ms, idle_ms, new, is_new
        self.at_ms = 0  # of the request that is being counted
        self._buckets: OrderedDict[BucketKey, tuple[int, B]] = OrderedDict()  # last used first; time of the last use
        self.limits: dict[Entity, float] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def limit(self, user: str, client_id: str) -> tuple[float, BucketKey] | None:
        """CQ4. Return the quota in force and the key of its bucket; None without a quota."""
        limits = self.limits
        return next(((limits[entity], key) for entity, key in levels(user, client_id) if entity in limits), None)

    def find(self, user: str, client_id: str) -> tuple[float, B] | None:
        """Return the quota in force and its bucket; None without a quota."""
        self.at_ms = self._now_ms()
        self._drop_idle()
        found = self.limit(user, client_id)
        if found is None:
            return None
        limit, key = found
        _, bucket = self._buckets.pop(key, (0, None))
        if bucket is None:
            bucket = self._new()
        self._buckets[key] = self.at_ms, bucket
        if len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)
        return limit, bucket

    def _drop_idle(self) -> None:
        """CQ7."""
        buckets = self._buckets
        while buckets:
            key = next(iter(buckets))
            used_ms, bucket = buckets[key]
            if self.at_ms - used_ms < self._idle_ms or not self._is_new(bucket):
                return
            del buckets[key]
