"""One run of mixed protocols: a seed's sequence of requests to one broker, each answer, and the group after it.

Laws
    No clock decides: what the broker does later (a regular expression, a new partition) is awaited where it shows.
    JoinGroup and SyncGroup of a classic group wait for others, so all its members send them together: a round.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from tests.interop.differential.wire import ANSWER_S_MAX, Wire
from tests.interop.group_protocols.choices import REBALANCE_MS, Built, Choices
from tests.interop.group_protocols.members import Group, Names, Slot
from tests.interop.kit import until

from rota.protocol.consumer_protocol import Assignment, TopicPartition, decode_assignment, encode_assignment
from rota.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from rota.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from rota.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.describe_groups import DescribeGroupsRequest
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from rota.protocol.messages.join_group import JoinGroupResponse
from rota.protocol.messages.leave_group import LeaveGroupResponse
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

Line = dict[str, Any]

LOADING = {14, 15, 16}  # the codes of a coordinator that was just created
REQUESTS_PER_GROUP = 90  # fewer than ten seconds of them: until then a regular expression is resolved once
GROW_EVERY, PARTITIONS_MAX = 120, 9
INTERVAL = "group.consumer.assignment.interval.ms"
BROKER_CONFIG, SET, DELETE = 4, 0, 1
OUT = {"join_consumer": 40, "join_regex": 8, "join_classic": 35, "plain": 3, "fetch": 2, "commit": 2}
CONSUMER = {
    "acknowledge": 40,
    "plain": 15,
    "full": 8,
    "stale": 7,
    "subscribe": 6,
    "invalid": 6,
    "leave_consumer": 6,
    "lost": 4,
    "rejoin": 3,
    "to_classic": 4,
    "heartbeat": 1,
    "sync": 1,
    "leave_group": 1,
    "commit": 7,
    "fetch": 4,
}
CLASSIC = {
    "heartbeat": 22,
    "join_classic": 25,
    "sync": 22,
    "leave_group": 6,
    "join_refused": 4,
    "rejoin": 6,
    "plain": 2,
    "lost": 2,
    "commit": 7,
    "fetch": 4,
}
IN_CLASSIC_GROUP = {"round": 45, "heartbeat": 15, "join_consumer": 18, "leave_group": 8, "commit": 7, "fetch": 4}


class Run:
    """A seed on a broker."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        self.name = f"p{uuid.uuid4().hex[:7]}_"
        self.dice, self.names = Random(seed), Names(self.name)
        self.control = Wire(bootstrap, "control")
        self.group = Group(self.name, lambda client_id: Wire(bootstrap, client_id))
        self.partitions = {f"{self.name}{letter}": 4 for letter in "ab"}
        self.choices = Choices(self._topics())
        self.names.topic_ids = {
            topic_id: name.removeprefix(self.name) for name, topic_id in self.choices.topic_ids.items()
        }
        self.group.regex = f"{self.name}[ab]"
        self.probe: tuple[int, tuple[TopicPartitions, ...]] = (0, ())
        until(lambda: self._find() == 0, "a coordinator")
        until(lambda: self._probe() == sum(self.partitions.values()), "the topics")
        self._configure(SET)
        self._begin()

    def close(self) -> None:
        self._configure(DELETE)
        for wire in (self.control, *(slot.wire for slot in self.group.slots)):
            wire.close()

    def lines(self, requests: int) -> Iterator[Line]:
        for number in range(requests):
            die = Random(self.dice.getrandbits(64))
            if self.group.requests >= REQUESTS_PER_GROUP or self._is_guess():
                self._begin()
            if number % GROW_EVERY == GROW_EVERY - 1:
                self._grow()
            self.group.requests += 1
            yield {"n": number, "group": self.group.number, **self._turn(die)}

    # ---- turns

    def _turn(self, die: Random) -> Line:
        slot = die.choice(self.group.slots)
        if self.seen.get("kind") != "consumer":
            return self._turn_of_classic_group(die, slot)
        kinds = {"out": OUT, "consumer": CONSUMER, "classic": CLASSIC}[slot.mode]
        return self._send_request(die, slot, die.choices(list(kinds), list(kinds.values()))[0])

    def _turn_of_classic_group(self, die: Random, slot: Slot) -> Line:
        kind = die.choices(list(IN_CLASSIC_GROUP), list(IN_CLASSIC_GROUP.values()))[0]
        if kind == "round" or (slot.mode == "out" and kind != "join_consumer" and die.random() < 0.7):
            return self._round(die, slot)
        return self._send_request(die, slot, "rejoin" if kind == "join_consumer" and slot.mode == "classic" else kind)

    def _send_request(self, die: Random, slot: Slot, kind: str) -> Line:
        before = self.seen
        built = self._built(die, slot, kind)
        answer = slot.wire.send_request(*built)
        self._name(slot, answer)
        line: Line = {"kind": kind, "slot": slot.number, "asked": self.names.canonical(built[0])}
        if kind != "lost":
            self._learn(die, slot, answer)
        self._await_regex(built[0], answer, before)
        self._see()
        return {**line, "answer": self._answer(answer), "seen": self.seen["shown"]}

    def _built(self, die: Random, slot: Slot, kind: str) -> Built:
        group, choices = self.group, self.choices
        match kind:
            case "join_consumer" | "join_regex" | "rejoin":
                if kind != "rejoin" or slot.instance is not None or not slot.member_id:
                    slot.member_id = slot.new_id()
                return choices.join_consumer(die, group, slot, regex=kind == "join_regex")
            case "join_classic" if slot.mode == "out":
                slot.member_id = slot.new_id() if slot.instance is None else ""
                return choices.join_classic(die, group, slot)
            case "to_classic":
                if slot.instance is None and self._count("consumer") < 2:
                    return choices.plain(die, group, slot)
                slot.member_id = slot.member_id if slot.instance is None else ""
                return choices.join_classic(die, group, slot)
            case "lost":
                return choices.acknowledge(die, group, slot)
            case _:
                built: Built = getattr(choices, kind)(die, group, slot)
                return built

    def _round(self, die: Random, newcomer: Slot) -> Line:
        """All members join and sync; with a newcomer, whose JoinGroup begins the rebalance of a Stable group."""
        group, members = self.group, self.seen["ids"]
        inside = [slot for slot in group.slots if slot.mode == "classic" and slot.member_id in members]
        if len(inside) != len(members):  # a member that nobody speaks for
            self._begin()
            return {"kind": "new group"}
        is_new = newcomer not in inside and newcomer.instance not in self.seen["instances"]
        if not is_new and self.seen["state"] != "PreparingRebalance":
            return self._send_request(die, newcomer, "heartbeat")
        joiners = [newcomer, *inside] if is_new else inside
        if is_new:
            newcomer.new_id()
            newcomer.member_id, newcomer.owned = "", {}
        for slot in joiners:
            slot.wire.send(*self._joins_round(die, slot))
            if slot is newcomer and inside:
                until(lambda: self._see()["state"] == "PreparingRebalance", "the rebalance")
        joined = {slot: self._must(slot) for slot in joiners}
        for slot, answer in joined.items():
            self._name(slot, answer)
            self._learn(die, slot, answer)
        parts = self._dealt(joiners)
        for slot in joiners:
            request = SyncGroupRequest(
                group_id=group.group_id,
                generation_id=slot.epoch,
                member_id=slot.member_id,
                group_instance_id=slot.instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=parts,
            )
            slot.wire.send(request, 5)
        synced = {slot: self._must(slot) for slot in joiners}
        for slot, answer in synced.items():
            self._learn(die, slot, answer)
        self._see()
        answers = {slot.number: [self._answer(joined[slot]), self._answer(synced[slot])] for slot in joiners}
        return {
            "kind": "round",
            "answers": {str(number): answers[number] for number in sorted(answers)},
            "seen": self.seen["shown"],
        }

    def _joins_round(self, die: Random, slot: Slot) -> Built:
        request, _ = self.choices.join_classic(die, self.group, slot)
        return request, 3 if slot.instance is None else 5  # up to version 3 the member gets its id and joins at once

    def _dealt(self, members: list[Slot]) -> tuple[SyncGroupRequestAssignment, ...]:
        """The same from every member: Kafka's leader is the first of a hash table."""
        listed = [(name, number) for name in sorted(self.partitions) for number in range(self.partitions[name])]
        ordered = sorted(members, key=lambda slot: slot.number)
        parts = []
        for place, slot in enumerate(ordered):
            mine = listed[place :: len(ordered)]
            names = sorted({name for name, _ in mine} & set(slot.names))
            assigned = tuple(
                TopicPartition(topic=name, partitions=tuple(number for topic, number in mine if topic == name))
                for name in names
            )
            encoded = encode_assignment(Assignment(assigned_partitions=assigned), 1)
            parts.append(SyncGroupRequestAssignment(member_id=slot.member_id, assignment=encoded))
        return tuple(parts)

    def _must(self, slot: Slot) -> Any:
        answer = slot.wire.answer(ANSWER_S_MAX)
        assert answer is not None, f"slot {slot.number} got no answer; {self.seen}"
        return answer

    # ---- what came of a request

    def _answer(self, answer: Any) -> Any:
        fields = self.names.canonical(answer)
        if isinstance(answer, JoinGroupResponse):
            fields |= {"leader": "", "members": [], "skip_assignment": False}
        return fields

    def _name(self, slot: Slot, answer: Any) -> None:
        if isinstance(answer, JoinGroupResponse) and answer.error_code == 0 and not answer.member_id.endswith(".own"):
            self.names.drawn.setdefault(answer.member_id, f"{slot.number}#{slot.joins}")

    def _learn(self, die: Random, slot: Slot, answer: Any) -> None:
        code = getattr(answer, "error_code", 0)
        if isinstance(answer, LeaveGroupResponse):
            code = next(one.error_code for one in answer.members if one.member_id != "nobody")
            if code == 0:
                slot.leave()
        if code in (22, 25, 69, 82, 110, 111) and die.random() < 0.6:
            slot.leave()
        if code:
            return
        match answer:
            case ConsumerGroupHeartbeatResponse(member_epoch=epoch) if epoch < 0:
                slot.leave()
            case ConsumerGroupHeartbeatResponse():
                slot.mode, slot.epoch = "consumer", answer.member_epoch
                if answer.assignment is not None:
                    by_id = {topic_id: name for name, topic_id in self.choices.topic_ids.items()}
                    assigned = answer.assignment.topic_partitions
                    slot.owned = {by_id[part.topic_id]: tuple(sorted(part.partitions)) for part in assigned}
            case JoinGroupResponse():
                slot.mode, slot.epoch, slot.member_id = "classic", answer.generation_id, answer.member_id
            case SyncGroupResponse():
                assigned = decode_assignment(answer.assignment).assigned_partitions
                slot.owned = {part.topic: tuple(sorted(part.partitions)) for part in assigned}
                answer.assignment = repr(sorted(slot.owned.items())).encode()

    def _see(self) -> dict[str, Any]:
        """The group as it is described now."""
        described = self.control.send_request(ConsumerGroupDescribeRequest(group_ids=(self.group.group_id,)), 1).groups[
            0
        ]
        if described.error_code == 0:
            members = described.members
            for member in members:
                member.client_id = ""
            types = ["classic" if member.member_type == 0 else "consumer" for member in members]
            self.seen = {
                "kind": "consumer" if members else "",
                "state": described.group_state,
                "types": types,
                "ids": {member.member_id for member in members},
                "instances": {member.instance_id for member in members if member.instance_id},
                "epoch": described.group_epoch,
                "regexes": [member.subscribed_topic_regex for member in members if member.subscribed_topic_regex],
                "shown": self.names.canonical(described),
            }
            return self.seen
        classic = self.control.send_request(DescribeGroupsRequest(groups=(self.group.group_id,)), 5).groups[0]
        self.seen = {
            "kind": "classic",
            "state": classic.group_state,
            "ids": {member.member_id for member in classic.members},
            "instances": {member.group_instance_id for member in classic.members if member.group_instance_id},
            "shown": [classic.group_state, sorted(self.names[member.member_id] for member in classic.members)],
        }
        return self.seen

    def _count(self, kind: str) -> int:
        count: int = self.seen.get("types", []).count(kind)
        return count

    def _is_guess(self) -> bool:
        """Whether no member names an assignor: then Kafka's default decides by the order of a hash table."""
        return self.seen["kind"] == "consumer" and not self._count("consumer")

    def _await_regex(self, request: Any, answer: Any, before: dict[str, Any]) -> None:
        """A regular expression that is new in the group is resolved soon."""
        is_new = getattr(request, "subscribed_topic_regex", None) == self.group.regex and not before.get("regexes")
        if is_new and answer.error_code == 0:
            epoch = before.get("epoch", 1) if before["kind"] == "consumer" or "epoch" in before else 1
            until(lambda: self._see().get("epoch", 0) > epoch, "a resolved expression")

    # ---- the world

    def _begin(self) -> None:
        self.group.begin()
        self.seen: dict[str, Any] = {}
        self._see()

    def _find(self) -> int:
        request = FindCoordinatorRequest(coordinator_keys=(self.group.group_id,))
        code: int = self.control.send_request(request, 4).coordinators[0].error_code
        return code

    def _topics(self) -> dict[str, bytes]:
        wanted = tuple(
            CreatableTopic(name=name, num_partitions=4, replication_factor=1) for name in sorted(self.partitions)
        )
        created = self.control.send_request(CreateTopicsRequest(topics=wanted, timeout_ms=10_000), 7)
        assert all(topic.error_code == 0 for topic in created.topics), created
        return {topic.name: topic.topic_id for topic in created.topics}

    def _grow(self) -> None:
        """Add a partition to a topic, and wait until a member of another group is assigned it."""
        name = self.dice.choice(sorted(self.partitions))
        if self.partitions[name] >= PARTITIONS_MAX:
            return
        self._probe()
        self.partitions[name] += 1
        topic = CreatePartitionsTopic(name=name, count=self.partitions[name], assignments=None)
        answer = self.control.send_request(CreatePartitionsRequest(topics=(topic,), timeout_ms=10_000), 3)
        assert answer.results[0].error_code == 0, answer
        until(lambda: self._probe() == sum(self.partitions.values()), "the new partition")

    def _probe(self) -> int:
        """Return how many partitions the only member of a group has, -1 while the coordinator is loading."""
        epoch, owned = self.probe
        joins = {"subscribed_topic_names": tuple(sorted(self.partitions)), "rebalance_timeout_ms": REBALANCE_MS}
        request = ConsumerGroupHeartbeatRequest(
            group_id=f"{self.name}probe", member_id="probe", member_epoch=epoch, topic_partitions=owned, **joins
        )
        answer = self.control.send_request(request, 1)
        if answer.error_code in LOADING:
            return -1
        assert answer.error_code == 0, answer
        self.probe = (
            answer.member_epoch,
            tuple(
                TopicPartitions(topic_id=part.topic_id, partitions=part.partitions)
                for part in answer.assignment.topic_partitions
            ),
        )
        return sum(len(part.partitions) for part in self.probe[1])

    def _configure(self, operation: int) -> None:
        """Let targets be computed at once, and wait until two joins get two targets; or undo that."""
        config = AlterableConfig(name=INTERVAL, config_operation=operation, value="0" if operation == SET else None)
        resource = AlterConfigsResource(resource_type=BROKER_CONFIG, resource_name="", configs=(config,))
        answer = self.control.send_request(IncrementalAlterConfigsRequest(resources=(resource,)), 1)
        assert answer.responses[0].error_code == 0, answer
        if operation == SET:
            until(self._computes_at_once, "an assignment interval of 0")

    def _computes_at_once(self) -> bool:
        probe = f"{self.name}interval{uuid.uuid4().hex}"
        request = ConsumerGroupHeartbeatRequest(
            group_id=probe,
            member_id="a",
            member_epoch=0,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=tuple(sorted(self.partitions)),
            topic_partitions=(),
        )
        self.control.send_request(request, 1)
        second = self.control.send_request(replace(request, member_id="b"), 1)
        return bool(second.member_epoch == 3)
