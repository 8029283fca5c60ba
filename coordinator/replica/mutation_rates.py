"""How many partitions clients may create or delete: a token bucket for each entity with a quota (KIP-599). Pure.

Law
    CQ10 A mutation is allowed while the bucket of its client is not below zero, and may bring it there: a request of
         any size is served once. With versions that know no refusal each mutation is done, and its client throttled.
"""

from __future__ import annotations

from collections.abc import Callable

from rota.coordinator.metadata.client_quotas import Entity
from rota.coordinator.replica.client_rates import THROTTLE_MS_MAX
from rota.coordinator.replica.entity_buckets import EntityBuckets


class TokenBucket:
    """Fills at a rate up to a burst, which is the rate times `burst_seconds`."""

    __slots__ = ("_at_ms", "_tokens", "_used")

    def __init__(self) -> None:
        self._used, self._tokens, self._at_ms = False, 0.0, 0

    def fill(self, rate: float, burst_seconds: float, now_ms: int) -> float:
        """Return the tokens that there are now. A new bucket is full."""
        burst = rate * burst_seconds
        elapsed_ms = now_ms - self._at_ms
        filled = self._tokens if not elapsed_ms else self._tokens + rate * elapsed_ms / 1_000
        filled = filled if self._used else burst
        self._used, self._tokens, self._at_ms = True, min(filled, burst), now_ms
        return self._tokens

    def take(self, tokens: int) -> float:
        """Take tokens; return how many are left, which may be below zero."""
        self._tokens -= tokens
        return self._tokens

    @property
    def is_positive(self) -> bool:
        """Whether no client waits for this bucket."""
        return self._tokens >= 0


class MutationRates:
    """`limits` are quotas in partitions per second; they may change. A burst is what `burst_ms` allow."""

    __slots__ = ("_burst_seconds", "_entities", "limits")

    def __init__(self, now_ms: Callable[[], int], *, burst_ms: int) -> None:
        self._burst_seconds = burst_ms / 1_000
        self._entities = EntityBuckets(now_ms, burst_ms, TokenBucket, lambda bucket: bucket.is_positive)
        self.limits: dict[Entity, float] = self._entities.limits

    def take(self, user: str, client_id: str, partitions: int, *, is_strict: bool) -> int:
        """CQ10. Count mutations; return for how many ms the client is throttled.

        With `is_strict` a client that is throttled may not make them, and they do not count.
        """
        found = self._entities.find(user, client_id)
        if found is None:
            return 0
        rate, bucket = found
        tokens = bucket.fill(rate, self._burst_seconds, self._entities.at_ms)
        if is_strict:
            if tokens >= 0:
                bucket.take(partitions)
        else:
            tokens = bucket.take(partitions)
        return 0 if tokens >= 0 else int(min(-(1_000 * tokens // rate), THROTTLE_MS_MAX))
