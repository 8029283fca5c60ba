"""`rota groups why`: on Rota the reasons, on Apache Kafka that there is no timeline."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from tests.cli.kit import Rota
from tests.interop.kit import PATIENCE_S

STUCK = 100  # unread records of a stuck partition
WEEK_MS = 7 * 24 * 3_600_000  # offsets.retention.minutes


def test_a_rebalance_is_explained_with_the_member_that_caused_it(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic, 2)
    with cli.member(group, topic, client_id="billing-1"), cli.member(group, topic, client_id="billing-2"):
        pass
    done = cli("groups", "why", group, "--json")
    if not has_timeline(cli):
        assert done.code == 1
        assert "keeps no timeline" in json.loads(done.err)["error"]["message"]
        return
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["group"] == group
    assert 1 <= len(document["rebalances"]) <= 3
    assert "billing-" in " ".join(sentence for each in document["rebalances"] for sentence in each["sentences"])
    text = cli("groups", "why", group, "--last", "1").out
    sentences = document["rebalances"][-1]["sentences"]
    assert text.splitlines()[1 : 1 + len(sentences)] == sentences
    assert len(cli("groups", "why", group, "--events").lines) > len(cli("groups", "why", group).lines)


def test_the_lag_is_shown_worst_partition_first(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic, 2)
    cli.produce(topic, [b"v"] * 3, partition=1)
    cli.produce(topic, [b"v"], partition=0)
    with cli.member(group, topic, client_id="billing-1"):
        pass
    cli.commit(group, topic, {0: 0, 1: 1})
    if not has_timeline(cli):
        return
    assert cli.json("groups", "why", group)["lag"]["records"] == 3
    text = cli("groups", "why", group).out
    assert "Lag: 3 records in 2 partitions." in text
    assert text.index(f"{topic}-1: 2 records, read to 1 of 3") < text.index(f"{topic}-0: 1 record, read to 0 of 1")


def test_a_partition_whose_lag_grows_alone_is_found(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic, 2)
    cli.produce(topic, [b"v"], partition=0)
    with cli.member(group, topic, client_id="billing-1"):
        pass
    if not has_timeline(cli):
        return
    cli.produce(topic, [b"v"] * STUCK, partition=1)
    cli.commit(group, topic, {0: 1, 1: 0})
    is_over = Event()

    def go_on() -> None:
        while not is_over.is_set():
            cli.produce(topic, [b"v"], partition=1)

    with ThreadPoolExecutor() as thread:
        producing = thread.submit(go_on)
        try:
            found = stuck(cli, group)
        finally:
            is_over.set()
        producing.result()
    assert [each["subject"] for each in found] == [f"{topic}-1"]
    assert "stuck-partition" not in cli("groups", "why", group, "--trend", "0").out


def test_it_is_known_when_the_offsets_of_an_empty_group_expire(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic)
    with cli.member(group, topic, client_id="billing-1"):
        if has_timeline(cli):
            assert cli.json("groups", "why", group)["lag"]["expires_ms"] is None
    cli.commit(group, topic, {0: 0})
    if not has_timeline(cli):
        return
    shown = cli.json("groups", "why", group, "--events")
    (emptied_ms,) = [each["time_ms"] for each in shown["events"] if each["name"] == "emptied"][-1:]
    assert shown["lag"]["expires_ms"] == emptied_ms + WEEK_MS


def stuck(cli: Rota, group: str) -> list[dict[str, Any]]:
    """Return the findings once there are some: on a busy machine nothing may be produced between two looks."""
    ends = time.monotonic() + PATIENCE_S
    found: list[dict[str, Any]] = []
    while not found and time.monotonic() < ends:
        found = [each for each in cli.json("groups", "why", group)["findings"] if each["code"] == "stuck-partition"]
    return found


def has_timeline(cli: Rota) -> bool:
    """Whether the broker under test is a Rota: it writes the topic."""
    return "__rota_group_timeline" in cli("topics", "list", "--internal").out


def test_a_group_of_which_nothing_is_kept_is_refused(cli: Rota, group: str) -> None:
    refused = cli.fails("groups", "why", group)
    assert refused.code == 1
    assert "keeps no timeline" in refused.err or group in refused.err
