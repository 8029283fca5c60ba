"""A caller that only asks "is it a batch" catches one class; one that answers a producer tells three apart."""

from __future__ import annotations

import pytest

from rota.protocol.records.errors import CorruptBatch, InvalidBatch, UnsupportedMagic


@pytest.mark.parametrize("refinement", [InvalidBatch, UnsupportedMagic])
def test_every_refinement_is_a_corrupt_batch(refinement: type[CorruptBatch]) -> None:
    assert issubclass(refinement, CorruptBatch)
    assert not issubclass(CorruptBatch, refinement)
