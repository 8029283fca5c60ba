"""The same random requests of both group protocols to Rota and to Apache Kafka: the answers, and the group after each.

Kafka's side is a recording, so that this runs without Java. With ROTA_PEER=HOST:PORT a live Kafka is asked as well.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter

import pytest
from tests.interop.differential.comparison import compare
from tests.interop.differential.explained import Explained
from tests.interop.group_protocols.recording import PATH, REQUESTS, SEED, transcript
from tests.interop.recorded_scenario import read
from tests.soak import SOAK

PEER = os.environ.get("ROTA_PEER")
LIVE_REQUESTS = REQUESTS if SOAK else 300
EXPLAINED = (
    Explained(
        name="OffsetFetch with an epoch and no member",
        kind="fetch",
        where=r"\.answer\.groups\[0\]\.error_code",
        kafka=-1,
        rota=25,
        reason="Kafka fails on the missing member (UNKNOWN_SERVER_ERROR). Rota answers UNKNOWN_MEMBER_ID.",
    ),
    Explained(
        name="A subscription that is too short to have a version",
        kind="join_refused",
        where=r"\.answer\.error_code",
        kafka=-1,
        rota=23,
        reason="Kafka fails on it; others that cannot be read get INCONSISTENT_GROUP_PROTOCOL, as here.",
    ),
)


def test_rota_answers_as_the_recorded_kafka(bootstrap: str) -> None:
    compare(read(PATH), transcript(bootstrap), EXPLAINED)


def test_the_recording_is_worth_comparing() -> None:
    """Members of both protocols in one group, groups of both types, all states and refusals occur in it."""
    lines = read(PATH)
    assert len(lines) == REQUESTS
    groups = [line["seen"] for line in lines if isinstance(line.get("seen"), dict)]
    assert {group["group_state"] for group in groups} >= {"Assigning", "Reconciling", "Stable"}
    mixed = [group for group in groups if {member["member_type"] for member in group["members"]} == {0, 1}]
    assert len(mixed) > REQUESTS / 4
    upgrades = Counter(
        type(before["seen"]) is not type(after["seen"]) and before["group"] == after["group"]
        for before, after in itertools.pairwise(lines)
        if "seen" in before and "seen" in after
    )
    assert upgrades[True] > 30
    codes = {line["answer"].get("error_code") for line in lines if isinstance(line.get("answer"), dict)}
    assert codes >= {0, 22, 23, 25, 26, 27, 42, 79, 82, 110, 111, 112, 128}


@pytest.mark.peer
@pytest.mark.skipif(PEER is None, reason="ROTA_PEER names no running Apache Kafka")
def test_rota_answers_as_the_living_kafka(bootstrap: str) -> None:
    assert PEER is not None
    seed = SEED + 1
    compare(transcript(PEER, seed, LIVE_REQUESTS), transcript(bootstrap, seed, LIVE_REQUESTS), EXPLAINED)
