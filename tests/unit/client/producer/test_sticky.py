"""The sticky choice, with a chance that is told what to say."""

from __future__ import annotations

from collections import Counter
from random import Random

from rota.client.producer.sticky import Sticky


def drawing(*numbers: int) -> Sticky:
    answer = iter(numbers)
    return Sticky(100, lambda _: next(answer))


def test_the_partition_changes_after_batch_size_bytes() -> None:
    sticky = drawing(0, 2)
    sticky.update(range(3), range(3))
    assert [sticky.filled(60), sticky.filled(39), sticky.filled(1)] == [0, 0, 2]


def test_a_partition_without_a_leader_is_avoided() -> None:
    sticky = drawing(0, 0)
    sticky.update(range(3), range(3))
    sticky.update(range(3), [1, 2])
    assert sticky.partition == 1


def test_it_stays_while_others_lose_their_leader() -> None:
    sticky = drawing(1)
    sticky.update(range(3), range(3))
    sticky.update(range(3), [1])
    assert sticky.partition == 1


def test_without_leaders_any_partition_is_chosen() -> None:
    sticky = drawing(2)
    sticky.update(range(3), [])
    assert sticky.partition == 2


def test_every_partition_gets_its_share() -> None:
    sticky = Sticky(100, Random(1).randrange)
    sticky.update(range(4), range(4))
    shares = Counter(sticky.filled(100) for _ in range(4_000))
    assert set(shares) == {0, 1, 2, 3}
    assert min(shares.values()) > 850
