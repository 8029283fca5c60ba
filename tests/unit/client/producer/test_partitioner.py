"""Keys go where Java's producer puts them."""

from __future__ import annotations

import pytest

from rota.client.producer.partitioner import KEY_BYTES_REMEMBERED_MAX, murmur2, partition_of

# org.apache.kafka.common.utils.UtilsTest.testMurmur2
PUBLISHED = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("data", PUBLISHED)
def test_murmur2_has_the_published_values(data: bytes) -> None:
    assert murmur2(data) == PUBLISHED[data] & 0xFFFF_FFFF


def test_a_negative_hash_is_made_positive_by_its_sign_bit() -> None:
    assert partition_of(b"21", 7) == (-973932308 & 0x7FFF_FFFF) % 7


def test_a_long_key_is_hashed_like_a_short_one() -> None:
    key = b"k" * (KEY_BYTES_REMEMBERED_MAX + 1)
    assert partition_of(key, 1000) == (murmur2(key) & 0x7FFF_FFFF) % 1000


def test_a_topic_with_one_partition_gets_everything() -> None:
    assert {partition_of(b"%d" % number, 1) for number in range(50)} == {0}
