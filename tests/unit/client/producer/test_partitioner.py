"""Keys go where Java's producer puts them."""

from __future__ import annotations

from rota.client.producer.partitioner import partition_of
from rota.protocol.records.produced import murmur2


def test_a_negative_hash_is_made_positive_by_its_sign_bit() -> None:
    assert partition_of(b"21", 7) == (-973932308 & 0x7FFF_FFFF) % 7


def test_a_long_key_is_hashed_like_a_short_one() -> None:
    key = b"k" * 1001
    assert partition_of(key, 1000) == (murmur2(key) & 0x7FFF_FFFF) % 1000


def test_a_topic_with_one_partition_gets_everything() -> None:
    assert {partition_of(b"%d" % number, 1) for number in range(50)} == {0}
