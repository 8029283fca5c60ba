"""Records that Apache Kafka 4.3.1 wrote into its own `__transaction_state`: the same conversation gives these bytes."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.transaction.script import DATA, Script, began, ended

from rota.coordinator.runtime.contract import Token
from rota.coordinator.transaction.events import InitProducer
from rota.coordinator.transaction.records import decode, encode
from rota.coordinator.transaction.state import Step, TransactionRecord
from rota.protocol.transaction_records import encode_key
from rota.protocol.wire import DecodeError

OFFSETS = ("__consumer_offsets", 3)
# a producer of version 0 adds data-0 and data-1, then the partition of its group; commits; aborts with version 2; and
# another process initializes the id: times of Kafka's clock, in ms since the epoch, and the records
TIMES = [0x1A2067F183A, 0x1A2067F18E3, 0x1A2067F18F7, 0x1A2067F1950, 0x1A2067F1962, 0x1A2067F1AB5, 0x1A2067F1ABB]
TIMES += [0x1A2067F1C5F]
KAFKAS = [
    "0001000000000000000000000000ea600000000001a2067f183affffffffffffffff0100080000000000000000",
    (
        "0001000000000000000000000000ea600102056461746103000000010000000000000001a2067f18e3000001a2067f18e301"
        "00080000000000000000"
    ),
    (
        "0001000000000000000000000000ea600103056461746103000000010000000000135f5f636f6e73756d65725f6f66667365"
        "7473020000000300000001a2067f18f7000001a2067f18e30100080000000000000000"
    ),
    (
        "0001000000000000000000000000ea600203056461746103000000010000000000135f5f636f6e73756d65725f6f66667365"
        "7473020000000300000001a2067f1950000001a2067f18e30100080000000000000000"
    ),
    "0001000000000000000000000000ea600401000001a2067f1962000001a2067f18e30100080000000000000000",
    "0001000000000000000000010000ea600301000001a2067f1ab5000001a2067f1ab5020008000000000000000002020002",
    "0001000000000000000000010000ea600501000001a2067f1abb000001a2067f1ab5020008000000000000000002020002",
    "0001000000000000000000020000ea600000000001a2067f1c5fffffffffffffffff020008000000000000000002020002",
]


class KafkasClock(Script):
    """The steps happen at the times at which Kafka wrote."""

    @property
    def wall_ms(self) -> int:
        return TIMES[self.now_ms]

    def tick(self) -> None:
        self.now_ms += 1


def test_the_same_conversation_writes_kafkas_bytes() -> None:
    script = KafkasClock()
    script.next_id = 0
    script.init()
    script.tick()
    script.add(("data", 1), DATA)  # the order of Kafka's hash set
    script.tick()
    script.add(OFFSETS)
    script.tick()
    script.end(True)
    script.tick()
    script.written(DATA, ("data", 1), OFFSETS)
    script.tick()
    script.end(False, version=2)
    script.tick()
    script.written()
    script.tick()
    script.init()
    assert [value and value.hex() for _, value in encode(script.log)] == KAFKAS


@pytest.mark.parametrize("raw", KAFKAS)
def test_kafkas_bytes_are_decoded_and_encoded_again(raw: str) -> None:
    record = decode(encode_key("t"), bytes.fromhex(raw))
    assert record is not None
    assert encode([record]) == [(encode_key("t"), bytes.fromhex(raw))]


@pytest.mark.parametrize("make", [began, lambda: ended(True), lambda: ended(False, version=2)])
def test_a_record_is_decoded_as_it_was(make: type[Script]) -> None:
    for record in make().log:
        ((key, value),) = encode([record])
        assert decode(key, value) == record


def test_the_next_producer_id_is_kept() -> None:
    script = Script()
    script.step(InitProducer(token=Token(1), timeout_ms=1, fresh_id=4))
    script.machine.prepare(script.value, False, 2, Step(0, 0), next_id=9)
    ((key, value),) = encode([TransactionRecord("t", script.value)])
    decoded = decode(key, value)
    assert decoded is not None
    assert decoded.value is not None
    assert decoded.value.next_producer_id == 9


def test_a_tombstone_has_no_value() -> None:
    record = TransactionRecord("t", None)
    assert encode([record]) == [(b"\0\0\0\1t", None)]
    assert decode(b"\0\0\0\1t", None) == record


def test_unknown_keys_are_skipped_and_unknown_states_refused() -> None:
    assert decode(b"\0\7whatever", b"") is None
    raw = bytearray.fromhex(KAFKAS[0])
    raw[16] = 6  # Dead is never written
    with pytest.raises(DecodeError, match="status 6"):
        decode(encode_key("t"), bytes(raw))
