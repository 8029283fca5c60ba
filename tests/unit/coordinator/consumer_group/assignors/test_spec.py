from __future__ import annotations

from rota.coordinator.consumer_group.assignors.spec import uuid_order


def test_ids_are_compared_as_kafka_compares_them() -> None:
    ids = [b"\x80" + bytes(15), bytes(16), bytes(8) + b"\x80" + bytes(7), b"\x7f" + bytes(15)]
    assert sorted(ids, key=uuid_order) == [ids[0], ids[2], ids[1], ids[3]]
