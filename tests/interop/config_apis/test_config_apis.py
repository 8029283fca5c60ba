"""A long conversation about dynamic configs is answered as Apache Kafka answered it, field by field.

Kafka's side is a recording, so that this runs without Java; with ROTA_PEER=HOST:PORT a live Kafka is asked as well.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.interop.config_apis.recording import recorded
from tests.interop.config_apis.scenario import CLIENT_METRICS, GROUP, Line, run_scenario
from tests.soak import soak_only

from rota.protocol.errors import ErrorCode

PEER = os.environ.get("ROTA_PEER")

OWN_WORDS = {
    "no number",
    "too small",
    "by default too small",
    "bad choice",
    "one bad of two",
    "validate bad",
    "min isr by default",
    "connections",
    "connections negative",
    "sensitive",
    "sensitive by default",
    "describe type 0",
    "describe type 3",
    "share reset bad",
    "share reset bad duration",
    "share isolation bad",
    "share delivery too few",
    "share locks too few",
    "renew bad",
    "streams standby negative",
    "streams delay",
    "per broker, by default",
}
"""Steps with the same error code and other words: Rota names the valid values, or why it refuses."""

DIFFERENT = {
    "sensitive": "Kafka loads the key store, of which there is none here, with each of its settings.",
    "unknown": "Kafka keeps any name, for plug-ins. Rota has none: it refuses, and names the nearest known name.",
    "listener": "Rota has no settings of a single listener, and says so.",
    "all defaults": "Kafka has kept the unknown name of the step before.",
}


def _comparable(line: Line) -> Any:
    answer = line["answer"]
    if line["step"] in OWN_WORDS:
        (result,) = answer.get("responses") or answer["results"]
        result["error_message"] = bool(result["error_message"])
    if "config_resources" in answer:  # the living Kafka also has those of tests that run beside this one
        answer["config_resources"] = [
            each
            for each in answer["config_resources"]
            if each["resource_type"] not in (CLIENT_METRICS, GROUP) or each["resource_name"] in ("g1", "m1")
        ]
    return answer


def _differences(kafka: list[Line], rota: list[Line]) -> list[str]:
    differ = []
    for theirs, ours in zip(kafka, rota, strict=True):
        where = f"{theirs['chapter']}, {theirs['step']}"
        assert where == f"{ours['chapter']}, {ours['step']}"
        if theirs["step"] in DIFFERENT and theirs["chapter"] in ("refused", "loggers"):
            continue
        if _comparable(theirs) != _comparable(ours):
            differ.append(f"{where}:\n  kafka {theirs['answer']}\n  rota  {ours['answer']}")
    return differ


def test_rota_answers_as_the_recorded_kafka(bootstrap: str) -> None:
    assert not (differ := _differences(recorded(), list(run_scenario(bootstrap)))), "\n".join(differ)


def test_the_recording_is_worth_comparing() -> None:
    lines = recorded()
    assert len(lines) > 150
    codes = {result["error_code"] for line in lines for result in line["answer"].get("responses", ())}
    assert {ErrorCode.NONE, ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST} <= codes
    names = {line["step"] for line in lines}
    assert names >= OWN_WORDS
    assert names >= set(DIFFERENT)


@soak_only
@pytest.mark.peer
@pytest.mark.skipif(PEER is None, reason="ROTA_PEER names no running Apache Kafka")
def test_rota_answers_as_the_living_kafka(bootstrap: str) -> None:
    """In the gate other tests use that Kafka at the same time, and meet the defaults that this one sets."""
    assert PEER is not None
    assert not (differ := _differences(list(run_scenario(PEER)), list(run_scenario(bootstrap)))), "\n".join(differ)
