"""How fast clients may produce or fetch: a rate in bytes per second for each user, client id or pair of both. Pure.

Laws
    CQ4 Of the quotas that match a client the most specific is in force: (user, client id), (user, default client id),
        user, (default user, client id), (default user, default client id), default user, client id, default client id.
        Source: Kafka's ClientQuotaManager.
    CQ5 Clients that a quota names together share a rate: all client ids of a user under a quota of users, all users of
        a client id under a quota of client ids. Under a default each user, client id or pair has its own.
    CQ6 What was recorded is above the rate over the last windows by no more than one request, if the client waits as
        long as it is throttled. The windows without requests before the first one count as well: a burst.
    CQ7 There are at most BUCKETS_MAX rates; one that nobody used for all its windows is dropped, which changes nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final

from rota.coordinator.metadata.client_quotas import CLIENT_ID, USER, Entity
from rota.coordinator.replica.replication_throttle import ByteRate

BUCKETS_MAX: Final = 10_000
THROTTLE_MS_MAX: Final = (1 << 31) - 1  # what throttle_time_ms of a response can say

Bucket = tuple[str | None, str | None]  # user, client id; None: those of all


def levels(user: str, client_id: str) -> Iterator[tuple[Entity, Bucket]]:
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


class ClientRates:
    """The rates of produced or of fetched bytes. `limits` are the quotas in bytes per second; they may change."""

    __slots__ = ("_at_ms", "_buckets", "_now_ms", "_window_ms", "_windows", "limits")

    def __init__(self, now_ms: Callable[[], int], *, windows: int, window_ms: int) -> None:
        self._now_ms, self._windows, self._window_ms = now_ms, windows, window_ms
        self._at_ms = 0  # of the request that is being counted
        self._buckets: OrderedDict[Bucket, tuple[int, ByteRate]] = (
            OrderedDict()
        )  # last used first; time of the last use
        self.limits: dict[Entity, float] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def record(self, user: str, client_id: str, size_bytes: int) -> int:
        """Count bytes; return for how many ms the client is throttled."""
        found = self._find(user, client_id)
        if found is None:
            return 0
        limit, rate = found
        rate.record(size_bytes)
        return rate.wait_ms(limit)

    def admit(self, user: str, client_id: str, size_bytes: int) -> int:
        """Count bytes that are sent unless the client is throttled; return for how many ms it is.

        After windows without any bytes a response is sent whatever its size: else a large batch would never be.
        """
        found = self._find(user, client_id)
        if found is None:
            return 0
        limit, rate = found
        was_empty = rate.is_empty
        rate.record(size_bytes)
        wait_ms = rate.wait_ms(limit)
        if not wait_ms or was_empty:
            return 0
        rate.record(-size_bytes)
        return wait_ms

    def burst_bytes(self, user: str, client_id: str) -> int | None:
        """Return the largest response that the client's quota allows at once; None without a quota."""
        limit = self._limit(user, client_id)
        if limit is None:
            return None
        return max(int(limit[0] * max(self._windows - 1, 1) * self._window_ms / 1_000), 1)

    # ---- inside

    def _limit(self, user: str, client_id: str) -> tuple[float, Bucket] | None:
        limits = self.limits
        return next(((limits[entity], bucket) for entity, bucket in levels(user, client_id) if entity in limits), None)

    def _find(self, user: str, client_id: str) -> tuple[float, ByteRate] | None:
        """Return the quota in force and the rate that is measured."""
        self._at_ms = self._now_ms()
        self._drop_idle()
        found = self._limit(user, client_id)
        if found is None:
            return None
        limit, bucket = found
        _, rate = self._buckets.pop(bucket, (0, None))
        if rate is None:
            rate = self._new_rate()
        self._buckets[bucket] = self._at_ms, rate
        if len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)
        return limit, rate

    def _new_rate(self) -> ByteRate:
        return ByteRate(
            lambda: self._at_ms,
            windows=self._windows,
            window_ms=self._window_ms,
            full_windows_min=self._windows - 1,
            wait_ms_max=THROTTLE_MS_MAX,
        )

    def _drop_idle(self) -> None:
        """CQ7."""
        buckets, idle_ms = self._buckets, self._windows * self._window_ms
        while buckets:
            bucket = next(iter(buckets))
            if self._at_ms - buckets[bucket][0] < idle_ms:
                return
            del buckets[bucket]
