"""The values of events."""

from __future__ import annotations

from rota.coordinator.runtime.contract import Token
from rota.coordinator.transaction.events import InitProducer, MarkersWritten, Producer


def test_a_producer_is_its_id_and_epoch() -> None:
    assert Producer(7, 1) == (7, 1)
    assert Producer(7, 1) != Producer(7, 2)


def test_a_new_producer_expects_nothing() -> None:
    event = InitProducer(token=Token(1), timeout_ms=1)
    assert (event.expected, event.fresh_id) == (None, None)


def test_markers_are_of_one_epoch() -> None:
    assert MarkersWritten(Producer(7, 1), [("t", 0)]).producer.epoch == 1
