"""What has the wrong type is refused by the name of its parameter, in every public call."""

from __future__ import annotations

import collections.abc
import inspect
import typing
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.client.producer.leader import Leader

import rota.client
from rota.client import (
    Admin,
    AdminConfig,
    Consumer,
    ConsumerConfig,
    GroupMetadata,
    NewPartitions,
    NewTopic,
    PartitionReader,
    Producer,
    ProducerConfig,
)
from rota.client.errors import IllegalArgument, IllegalUse
from rota.client.types import OffsetAndMetadata, TopicPartition

CONFIGS: dict[str, Any] = {
    "Admin": AdminConfig,
    "Consumer": ConsumerConfig,
    "PartitionReader": ConsumerConfig,
    "Producer": ProducerConfig,
}
KINDS: dict[str, Any] = {"Admin": Admin, "Consumer": Consumer, "PartitionReader": PartitionReader, "Producer": Producer}
ITERABLES = (
    collections.abc.Iterable,
    collections.abc.Collection,
    collections.abc.Sequence,
    collections.abc.Set,
    list,
    tuple,
    set,
    frozenset,
)
OTHERS: dict[str, Any] = {  # arguments of a call beside the one under test
    "group": "g",
    "resources": (),
    "topic": "t",
    "value": b"",
    "values": [],
    "timestamp_ms": 0,
    "to": "latest",
}


def parts(hint: Any) -> set[Any]:
    """The alternatives of a union, unpacked."""
    return {part for item in typing.get_args(hint) for part in parts(item)} if is_union(hint) else {hint}


def is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, type(int | str))


def takes_several(hint: Any) -> bool:
    return any(typing.get_origin(part) in ITERABLES for part in parts(hint))


def parameters() -> list[tuple[str, str, str, bool]]:
    """(class, method, parameter, whether one TopicPartition may be given) of all public calls that take several."""
    found = []
    for kind, cls in KINDS.items():
        for name, member in inspect.getmembers(cls, inspect.isfunction):
            if name.startswith("_"):
                continue
            hints = typing.get_type_hints(member)
            found += [
                (kind, name, parameter, TopicPartition in parts(hints[parameter]))
                for parameter in inspect.signature(member).parameters
                if parameter in hints and takes_several(hints[parameter])
            ]
    return found


PARAMETERS = parameters()


def test_the_parameters_are_found() -> None:
    """The search sees what it is to see; every facade is searched."""
    found = {(kind, method, parameter) for kind, method, parameter, _ in PARAMETERS}
    assert {
        ("Admin", "delete_topics", "names"),
        ("Admin", "list_groups", "states"),
        ("Admin", "remove_members", "instances"),
        ("Admin", "list_group_offsets", "names"),
        ("Consumer", "subscribe", "topics"),
        ("Consumer", "assign", "partitions"),
        ("Consumer", "committed", "partitions"),
        ("Consumer", "end_offsets", "partitions"),
        ("Producer", "send", "headers"),
    } <= found
    exported = {getattr(rota.client, name) for name in rota.client.__all__ if name in KINDS}
    assert exported == set(KINDS.values())


async def made(result: Any) -> Any:
    """The result of a call, async or not."""
    return await result if inspect.isawaitable(result) else result


@pytest.fixture
async def leader() -> AsyncIterator[Leader]:
    async with Leader() as leader:
        yield leader


@pytest.mark.parametrize("single", ["ab", b"ab", TopicPartition("ab", 0)], ids=["str", "bytes", "partition"])
@pytest.mark.parametrize(("kind", "method", "parameter", "takes_one"), PARAMETERS)
async def test_a_single_name_is_refused(
    leader: Leader, kind: str, method: str, parameter: str, takes_one: bool, single: Any
) -> None:
    if takes_one and isinstance(single, TopicPartition):
        return
    more = {"group_id": "g"} if kind == "Consumer" else {}
    config = CONFIGS[kind](bootstrap_servers=leader.address, **more)
    async with KINDS[kind](config) as facade:
        call = getattr(facade, method)
        needed = [
            item
            for item in inspect.signature(call).parameters.values()
            if item.default is item.empty and item.name != parameter
        ]
        arguments = {item.name: OTHERS[item.name] for item in needed} | {parameter: single}
        before = len(leader.requests)
        with pytest.raises(TypeError, match=rf"{parameter} takes a list, tuple or set of .*, not "):
            await made(call(**arguments))
        assert not {type(item).__name__ for item in leader.requests[before:]} - {
            "MetadataRequest",
            "InitProducerIdRequest",
        }


async def test_the_partitions_of_one_group_are_several_too(leader: Leader) -> None:
    async with Admin(AdminConfig(bootstrap_servers=leader.address)) as admin:
        with pytest.raises(TypeError, match=r"names\['g'\] takes a list, tuple or set of TopicPartition, not "):
            await admin.list_group_offsets({"g": TopicPartition("t", 0)})


def takes_partitions(hint: Any) -> type | None:
    """list or dict, when partitions are the items or the keys of what the hint takes."""
    for part in parts(hint):
        if (typing.get_args(part) or (None,))[0] is TopicPartition:
            return dict if typing.get_origin(part) is collections.abc.Mapping else list
    return None


PARTITIONS = [
    (kind, name, parameter, taken)
    for kind, cls in KINDS.items()
    for name, member in inspect.getmembers(cls, inspect.isfunction)
    if not name.startswith("_")
    for parameter, hint in typing.get_type_hints(member).items()
    if parameter != "return" and (taken := takes_partitions(hint)) is not None
]


def test_the_parameters_that_take_partitions_are_found() -> None:
    assert {("Consumer", "commit", "offsets", dict), ("Consumer", "assign", "partitions", list)} <= set(PARTITIONS)
    assert {("Admin", "delete_records", "before", dict), ("Admin", "elect_leaders", "partitions", list)} <= set(
        PARTITIONS
    )


@pytest.mark.parametrize("wrong", ["a0", ("a", "0"), ("a",), 7, ("a", 1.0)], ids=repr)
@pytest.mark.parametrize(("kind", "method", "parameter", "taken"), PARTITIONS)
async def test_values_that_are_no_partition_are_refused(
    leader: Leader, kind: str, method: str, parameter: str, taken: type, wrong: Any
) -> None:
    """The two letters of a str are no topic and no number."""
    more = {"group_id": "g"} if kind == "Consumer" else {}
    async with KINDS[kind](CONFIGS[kind](bootstrap_servers=leader.address, **more)) as facade:
        call = getattr(facade, method)
        needed = [item for item in inspect.signature(call).parameters.values() if item.default is item.empty]
        arguments = {item.name: OTHERS[item.name] for item in needed if item.name != parameter}
        with pytest.raises(IllegalArgument, match=rf"{parameter} takes TopicPartition\(topic, number\), not "):
            await made(call(**arguments, **{parameter: {wrong: 1} if taken is dict else [wrong]}))


async def test_a_time_and_an_offset_are_whole_numbers(leader: Leader) -> None:
    at = TopicPartition("t", 0)
    async with Consumer(ConsumerConfig(bootstrap_servers=leader.address, group_id="g")) as consumer:
        with pytest.raises(IllegalArgument, match=r"time 1\.5 for t-0: times are whole milliseconds, not float"):
            await consumer.offsets_for_times({at: 1.5})  # type: ignore[dict-item]
        with pytest.raises(IllegalArgument, match=r"offsets takes integers or OffsetAndMetadata, not t-0 at '5'"):
            await consumer.commit({at: "5"})  # type: ignore[dict-item]


@pytest.mark.parametrize(("parameter", "wrong"), [("timestamp_ms", 1.5), ("timestamp_ms", "5"), ("partition", "0")])
async def test_send_takes_whole_numbers(leader: Leader, parameter: str, wrong: Any) -> None:
    """Also when the topic is known, and the record needs no wait."""
    async with Producer(ProducerConfig(bootstrap_servers=leader.address)) as producer:
        for _ in range(2):
            with pytest.raises(IllegalArgument, match=f"{parameter} takes an integer, not {wrong!r}"):
                await producer.send("t", b"v", **{parameter: wrong})
            await producer.partitions_for("t")


async def test_an_integer_type_with_index_is_a_whole_number(leader: Leader) -> None:
    class Index:
        def __index__(self) -> int:
            return 0

    async with Producer(ProducerConfig(bootstrap_servers=leader.address)) as producer:
        sent = await producer.send_and_wait("t", b"v", partition=Index(), timestamp_ms=Index())  # type: ignore[arg-type]
    assert (sent.partition, sent.timestamp) == (0, 0)


@pytest.mark.parametrize("wrong", [["t"], ("t",), b"t", 7], ids=repr)
async def test_values_that_are_no_topic_name_are_refused(leader: Leader, wrong: Any) -> None:
    message = "topic takes the name of one topic, not "
    async with Producer(ProducerConfig(bootstrap_servers=leader.address)) as producer:
        with pytest.raises(IllegalUse, match="a topic is a str, not "):
            await producer.send(wrong, b"v")
        with pytest.raises(IllegalUse, match="a topic is a str, not "):
            await producer.partitions_for(wrong)
    async with Consumer(ConsumerConfig(bootstrap_servers=leader.address, group_id="g")) as consumer:
        with pytest.raises(IllegalArgument, match=message):
            await consumer.partitions_for(wrong)
    async with PartitionReader(ConsumerConfig(bootstrap_servers=leader.address)) as reader:
        with pytest.raises(IllegalArgument, match=message):
            await reader.partitions(wrong)


@pytest.mark.parametrize("wrong", ["5", 1.5], ids=repr)
async def test_a_consumer_takes_whole_numbers(leader: Leader, wrong: Any) -> None:
    at = TopicPartition("t", 0)
    async with Consumer(ConsumerConfig(bootstrap_servers=leader.address, group_id="g")) as consumer:
        consumer.assign([at])
        with pytest.raises(IllegalArgument, match=f"max_records takes an integer, not {wrong!r}"):
            await consumer.getmany(wrong)
        for offset in (wrong, OffsetAndMetadata(wrong)):
            with pytest.raises(IllegalArgument, match=f"offset takes an integer, not {wrong!r}"):
                consumer.seek(at, offset)


@pytest.mark.parametrize("given", [b"h:1", 7])
def test_a_configuration_takes_text_or_a_tuple(given: Any) -> None:
    """Text is what Kafka's properties have: addresses with commas."""
    with pytest.raises(rota.client.ConfigError, match="bootstrap_servers"):
        AdminConfig(bootstrap_servers=given)


NUMBERS = [
    (kind, name, parameter)
    for kind, cls in KINDS.items()
    for name, member in inspect.getmembers(cls, inspect.isfunction)
    if not name.startswith("_")
    for parameter, hint in typing.get_type_hints(member).items()
    if parameter != "return" and int in parts(hint)
]
VALID: dict[str, Any] = {  # arguments of a call beside the number under test
    "before": {},
    "changes": {},
    "counts": {},
    "group": "g",
    "members": ["m"],
    "names": ["n"],
    "new": [],
    "offset": 0,
    "offsets": {},
    "partition": TopicPartition("t", 0),
    "partitions": [TopicPartition("t", 0)],
    "resources": [],
    "specs": {},
    "start": 0,
    "time": 0,
    "times": {},
    "timestamp_ms": 0,
    "topic": "t",
    "topics": ["t"],
    "totals": {},
    "value": b"",
    "values": [],
}


def test_the_parameters_that_take_a_number_are_found() -> None:
    assert {
        ("Admin", "delete_topics", "timeout_ms"),
        ("Consumer", "getmany", "timeout_ms"),
        ("PartitionReader", "fetch", "min_bytes"),
        ("Producer", "flush", "timeout_ms"),
    } <= set(NUMBERS)


@pytest.mark.parametrize(("kind", "method", "parameter"), NUMBERS)
async def test_values_that_are_no_number_are_refused(leader: Leader, kind: str, method: str, parameter: str) -> None:
    """Law NC8. As the text of a property file or of a command line."""
    more = {"group_id": "g"} if kind == "Consumer" else {}
    async with KINDS[kind](CONFIGS[kind](bootstrap_servers=leader.address, **more)) as facade:
        if kind == "Consumer":
            facade.assign([TopicPartition("t", 0)])
        call = getattr(facade, method)
        needed = [item for item in inspect.signature(call).parameters.values() if item.default is item.empty]
        arguments = {item.name: VALID[item.name] for item in needed if item.name != parameter}
        if (method, parameter) == ("reset_group_offsets", "timeout_ms"):
            arguments["to"] = "latest"
        with pytest.raises(IllegalArgument, match=rf"^(time|{parameter}) .*'5'"):
            await made_or_read(call(**arguments, **{parameter: "5"}))


async def made_or_read(result: Any) -> Any:
    """As `made`; of an async iterator the first item."""
    return await anext(result) if isinstance(result, AsyncIterator) else await made(result)


@pytest.mark.parametrize("number", [1 << 31, -(1 << 31) - 1])
@pytest.mark.parametrize(("kind", "method", "parameter", "taken"), PARTITIONS)
async def test_no_number_of_a_partition_is_beyond_its_field(
    leader: Leader, kind: str, method: str, parameter: str, taken: type, number: int
) -> None:
    at = TopicPartition("t", number)
    await refused_number(
        leader, kind, method, rf"partition of t is {number}", {parameter: {at: 1} if taken is dict else [at]}
    )


T0 = TopicPartition("t", 0)
BEYOND = [
    ("Admin", "list_offsets", {"times": {T0: 1 << 63}}),
    ("Admin", "delete_records", {"before": {T0: 1 << 63}}),
    ("Admin", "alter_group_offsets", {"offsets": {T0: 1 << 63}}),
    ("Admin", "alter_group_offsets", {"offsets": {T0: OffsetAndMetadata(1, leader_epoch=1 << 31)}}),
    ("Admin", "reset_group_offsets", {"time_ms": 1 << 63}),
    ("Admin", "reset_group_offsets", {"time_ms": -1}),
    ("Admin", "reset_group_offsets", {"offset": 1 << 63}),
    ("Admin", "create_partitions", {"totals": {"t": 1 << 31}}),
    ("Consumer", "commit", {"offsets": {T0: 1 << 63}}),
    ("Consumer", "seek", {"partition": T0, "offset": 1 << 63}),
    ("Consumer", "seek", {"partition": T0, "offset": OffsetAndMetadata(1, leader_epoch=1 << 31)}),
    ("Consumer", "offsets_for_times", {"times": {T0: 1 << 63}}),
    ("PartitionReader", "offset_at", {"partition": T0, "time": 1 << 63}),
    ("PartitionReader", "fetch", {"partition": T0, "offset": 1 << 63}),
    ("PartitionReader", "fetch", {"partition": T0, "offset": 0, "max_bytes": 1 << 31}),
    ("Producer", "send", {"partition": 1 << 31}),
    ("Producer", "send_offsets", {"offsets": {T0: 1}, "group": GroupMetadata("g", 1 << 31)}),
]


@pytest.mark.parametrize(("kind", "method", "arguments"), BEYOND)
async def test_no_number_is_beyond_its_field(leader: Leader, kind: str, method: str, arguments: dict[str, Any]) -> None:
    await refused_number(leader, kind, method, r"is -?\d+: it must be from -?\d+ to \d+", arguments)


async def refused_number(leader: Leader, kind: str, method: str, text: str, given: dict[str, Any]) -> None:
    more = {"group_id": "g"} if kind == "Consumer" else {}
    async with KINDS[kind](CONFIGS[kind](bootstrap_servers=leader.address, **more)) as facade:
        call, before = getattr(facade, method), len(leader.requests)
        needed = [item.name for item in inspect.signature(call).parameters.values() if item.default is item.empty]
        with pytest.raises(IllegalUse, match=text):
            await made(call(**{name: OTHERS[name] for name in needed if name not in given}, **given))
        assert {type(item).__name__ for item in leader.requests[before:]} <= {
            "MetadataRequest",
            "InitProducerIdRequest",
        }


def test_a_new_topic_has_numbers_that_fit() -> None:
    for numbers in ({"partitions": 1 << 31}, {"replication_factor": 1 << 15}, {"replica_assignments": [[1 << 31]]}):
        with pytest.raises(IllegalUse, match="it must be from"):
            NewTopic("t", **numbers)  # type: ignore[arg-type]
    with pytest.raises(IllegalUse, match="replica_assignments"):
        NewPartitions(2, [[1 << 31]])


async def test_metadata_of_a_commit_fits_a_string(leader: Leader) -> None:
    """Brokers hang up on it, and the commit would be sent again and again."""
    async with Consumer(ConsumerConfig(bootstrap_servers=leader.address, group_id="g")) as consumer:
        with pytest.raises(IllegalUse, match="has 32768 bytes: 32767 fit"):
            await consumer.commit({T0: OffsetAndMetadata(1, "é" * 16_384)})
