"""One conversation about transactions, sent to any broker: each request in each state, by right and wrong producers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.interop.transaction_apis.markers import write_markers
from tests.interop.transaction_apis.odd_requests import send_odd_requests
from tests.interop.transaction_apis.offsets import commit_offsets
from tests.interop.transaction_apis.scenario_client import ABSENT, Line, ScenarioClient
from tests.interop.transaction_apis.zombies import replace_producers


def run_scenario(bootstrap: str) -> Iterator[Line]:
    """The whole conversation."""
    client = ScenarioClient(bootstrap)
    try:
        for name, chapter in CHAPTERS.items():
            for line in chapter(client):
                yield {"chapter": name, **line}
    finally:
        client.wire.close()


def _ends(version: int) -> Any:
    """Every end in every state, by the current epoch, by the one before and by wrong producers."""

    def chapter(t: ScenarioClient) -> Iterator[Line]:
        name = f"end{version}"
        for committed in (True, False):
            producer_id, epoch = t.new(name)
            for again in (True, False):
                yield t.end("in Empty, epoch before", name, (producer_id, epoch - 1), again, version)
            yield t.end("in Empty: commit", name, (producer_id, epoch), True, version)
            yield t.add("begin", name, (producer_id, epoch), 0, 1)
            yield t.end("wrong id", name, (producer_id + 500, epoch), committed, version)
            yield t.end("wrong epoch", name, (producer_id, epoch + 3), committed, version)
            yield t.end("epoch before", name, (producer_id, epoch - 1), committed, version)
            yield t.describe("ongoing", name)
            yield t.end("end", name, (producer_id, epoch), committed, version)
            yield t.describe("ended", name)
            for again in (committed, not committed):
                yield t.end("again", name, (producer_id, epoch), again, version)
            yield t.end("wrong epoch when ended", name, (producer_id, epoch + 7), committed, version)
            yield t.add("old epoch", name, (producer_id, epoch), 2)
            yield t.add("next epoch", name, (producer_id, epoch + 1), 2)
            yield t.init("begin again", name)
            t.settle(name)
            yield t.init("begin again", name)

    return chapter


def _empty_abort(t: ScenarioClient) -> Iterator[Line]:
    producer_id, epoch = t.new("nothing")
    yield t.end("abort nothing", "nothing", (producer_id, epoch), False, 5)
    yield t.end("retry", "nothing", (producer_id, epoch), False, 5)
    yield t.end("abort nothing again", "nothing", (producer_id, epoch + 1), False, 5)
    yield t.end("commit nothing", "nothing", (producer_id, epoch + 2), True, 5)
    yield t.describe("state", "nothing")


def _init(t: ScenarioClient) -> Iterator[Line]:
    producer_id, epoch = t.new("init")
    for version in range(6):
        yield t.init("again", "init", version=version)
    epoch += 6
    yield t.init("mine", "init", (producer_id, epoch))
    yield t.init("retry", "init", (producer_id, epoch))
    yield t.init("next", "init", (producer_id, epoch + 1))
    for version in (3, 4, 5):
        yield t.init("zombie", "init", (producer_id, epoch), version)
        yield t.init("of the future", "init", (producer_id, epoch + 9), version)
        yield t.init("of another", "init", (producer_id + 500, epoch), version)
    for half in ((producer_id, ABSENT), (ABSENT, epoch)):
        yield t.init("half a producer", "init", half)
    for timeout_ms in (0, -1, 900_000, 900_001):
        yield t.init("timeout", "init", ms=timeout_ms)
    yield t.init("no name", "")


def _fencing(t: ScenarioClient) -> Iterator[Line]:
    for name, mine in (("fence", False), ("self", True)):
        for version in (3, 5):
            producer_id, epoch = t.new(name)
            yield t.add("begin", name, (producer_id, epoch), 0, version=version)
            had = (producer_id, epoch) if mine else (ABSENT, ABSENT)
            yield t.init("while it is ongoing", name, had)
            t.settle(name)
            yield t.describe("aborted", name)
            yield t.add("zombie", name, (producer_id, epoch), 0)
            yield t.init("repeated", name, had)
            yield t.end("zombie ends", name, (producer_id, epoch), True, 4)
            yield t.init("and again", name)


def _partitions(t: ScenarioClient) -> Iterator[Line]:
    producer_id, epoch = t.new("add")
    for version in range(4):
        yield t.add("wrong epoch", "add", (producer_id, epoch + 1), 0, version=version)
        yield t.add("wrong id", "add", (producer_id + 500, epoch), 0, version=version)
        yield t.offsets("wrong epoch", "add", (producer_id, epoch + 1), version)
        yield t.offsets("wrong id", "add", (producer_id + 500, epoch), version)
    yield t.add("unknown id", "unknown", (producer_id, epoch), 0)
    yield t.offsets("unknown id", "unknown", (producer_id, epoch))
    yield t.add("no id", "", (producer_id, epoch), 0)
    yield t.offsets("no id", "", (producer_id, epoch))
    yield t.add("missing partition", "add", (producer_id, epoch), 0, 99)
    yield t.describe("nothing added", "add")
    for verify_only in (True, False, True):
        for version in (4, 5):
            yield t.batched("batched", "add", (producer_id, epoch), 0, 2, verify_only=verify_only, version=version)
    yield t.batched("another partition", "add", (producer_id, epoch), 1, verify_only=True)
    yield t.batched("wrong epoch", "add", (producer_id, epoch + 1), 0, verify_only=True)
    yield t.batched("wrong id", "add", (producer_id + 500, epoch), 0, verify_only=True)
    yield t.batched("unknown", "unknown", (producer_id, epoch), 0, verify_only=True)
    yield t.batched("no id", "", (producer_id, epoch), 0, verify_only=True)
    yield t.batched("missing partition", "add", (producer_id, epoch), 0, 99, verify_only=False)


def _lists(t: ScenarioClient) -> Iterator[Line]:
    producer_id, _ = t.new("listed")
    yield t.list("by id", producer_id_filters=(producer_id,))
    yield t.list("by another id", producer_id_filters=(producer_id + 500,))
    yield t.list("by states", producer_id_filters=(producer_id,), state_filters=("Empty", "Dead", "Bogus"))
    yield t.list("by other states", producer_id_filters=(producer_id,), state_filters=("Ongoing", "PrepareEpochFence"))
    yield t.list("by time", producer_id_filters=(producer_id,), duration_filter=1_000_000)
    yield t.list("version 0", 0, producer_id_filters=(producer_id,))
    for pattern in ("listed.*", ".*", "", None, "listed", "isted.*", "(?i)LISTED.*", "LISTED.*", r"\pL+[\w_-]*"):
        yield t.list(f"pattern {pattern}", 2, producer_id_filters=(producer_id,), transactional_id_pattern=pattern)
    for pattern in ("(", ")", "[", "a**", "a{1001}", "(?=a)", r"\1", "*", r"\pX", "(?z)", "[z-a]", "[[:foo:]]"):
        yield t.list(f"pattern {pattern}", 2, transactional_id_pattern=pattern, state_filters=("Bogus",))
    yield t.describe("unknown ones", "listed", "unknown", "")


CHAPTERS = {
    **{f"EndTxn {version}": _ends(version) for version in range(6)},
    "an abort of nothing": _empty_abort,
    "InitProducerId": _init,
    "fencing": _fencing,
    "partitions": _partitions,
    "lists": _lists,
    "zombies": replace_producers,
    "WriteTxnMarkers": write_markers,
    "TxnOffsetCommit": commit_offsets,
    "odd requests": send_odd_requests,
}
