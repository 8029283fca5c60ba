"""`rota groups why`: on Rota the reasons, on Apache Kafka that there is no timeline."""

from __future__ import annotations

import json

from tests.cli.kit import Rota


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


def has_timeline(cli: Rota) -> bool:
    """Whether the broker under test is a Rota: it writes the topic."""
    return "__rota_group_timeline" in cli("topics", "list", "--internal").out


def test_a_group_of_which_nothing_is_kept_is_refused(cli: Rota, group: str) -> None:
    refused = cli.fails("groups", "why", group)
    assert refused.code == 1
    assert "keeps no timeline" in refused.err or group in refused.err
