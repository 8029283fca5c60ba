"""Issue point 10: the same random requests to Rota and to Apache Kafka, answered alike.

Kafka's side is a recording, so that this runs without Java. With ROTA_PEER=HOST:PORT a live Kafka is asked as well,
with the seeds of ROTA_SEEDS ("2 3 0"; 0 is any): `make interop` asks for several. `make test` sends a part of the
requests to the live Kafka, `make interop` and `make soak` all of them.
"""

from __future__ import annotations

import os
import random

import pytest
from tests.interop.differential.comparison import compare
from tests.interop.differential.recording import RECORDED_SEEDS, REQUESTS, recorded, transcript
from tests.soak import SOAK

PEER = os.environ.get("ROTA_PEER")
ANY = 0  # draw one
LIVE_REQUESTS = REQUESTS if SOAK or "ROTA_SEEDS" in os.environ else 600
SEEDS = [int(seed) for seed in os.environ.get("ROTA_SEEDS", "2").split()]


@pytest.mark.parametrize("seed", RECORDED_SEEDS)
def test_rota_answers_as_the_recorded_kafka(bootstrap: str, seed: int) -> None:
    compare(recorded(seed), transcript(bootstrap, seed))


@pytest.mark.parametrize("seed", RECORDED_SEEDS)
def test_the_recording_is_worth_comparing(seed: int) -> None:
    """All states, parked requests, takeovers and refusals occur in it."""
    lines = list(recorded(seed))
    assert len(lines) == REQUESTS
    assert {line.get("state") for line in lines} >= {
        "Empty", "Dead", "PreparingRebalance", "CompletingRebalance", "Stable",
    }  # fmt: skip
    codes = {line["answer"]["error_code"] for line in lines if "error_code" in (line.get("answer") or ())}
    assert codes >= {0, 22, 23, 24, 25, 26, 27, 79, 82}
    assert any(line.get("answer") == "parked" for line in lines)
    assert any(line.get("released") for line in lines)


@pytest.mark.peer
@pytest.mark.skipif(PEER is None, reason="ROTA_PEER names no running Apache Kafka")
@pytest.mark.parametrize("seed", SEEDS)
def test_rota_answers_as_the_living_kafka(bootstrap: str, seed: int) -> None:
    assert PEER is not None
    if seed == ANY:
        seed = random.SystemRandom().randrange(1, 1_000_000)
        print(f"seed {seed}")
    compare(transcript(PEER, seed, LIVE_REQUESTS), transcript(bootstrap, seed, LIVE_REQUESTS))
