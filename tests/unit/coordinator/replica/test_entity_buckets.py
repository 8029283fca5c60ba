"""CQ7: which buckets are dropped. CQ4 and CQ5 are tested by the rates that use them."""

from __future__ import annotations

from rota.coordinator.metadata.client_quotas import entity_of
from rota.coordinator.replica.entity_buckets import EntityBuckets


def test_an_idle_bucket_that_is_not_as_a_new_one_stays() -> None:
    now_ms = 0
    buckets = EntityBuckets[list[int]](lambda: now_ms, 1_000, list, lambda bucket: not bucket)
    buckets.limits[entity_of({"user": None})] = 1.0
    for user in ("full", "empty"):
        found = buckets.find(user, "c")
        assert found is not None
        found[1].extend([1] if user == "full" else [])
    now_ms = 1_000
    buckets.find("other", "c")
    assert len(buckets) == 3
    assert buckets.find("full", "c") == (1.0, [1])
    now_ms = 3_000
    buckets.find("full", "c")
    assert len(buckets) == 1
    assert EntityBuckets[list[int]](lambda: 0, 1, list).find("u", "c") is None
