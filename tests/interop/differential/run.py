"""One run: a seed's sequence of requests to one broker, and what came of each, in names that all runs share.

Law
    Nothing here looks at a clock to decide. A request that is not answered is parked when the broker itself says so: a
    join waits only in PreparingRebalance, a sync only in CompletingRebalance, and several requests sent after it were
    answered.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.interop.differential import choices, offset_choices
from tests.interop.differential.canonical import Labels, prefix
from tests.interop.differential.choices import Built
from tests.interop.differential.learning import learn
from tests.interop.differential.slots import Circle, Slot, circles
from tests.interop.differential.wire import ANSWER_S_MAX, Wire
from tests.interop.kit import until

from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.describe_groups import DescribeGroupsRequest
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.join_group import JoinGroupResponse
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

Line = dict[str, Any]

PARKS_IN = {11: "PreparingRebalance", 14: "CompletingRebalance"}
KINDS = {
    "advance": 46,
    "join": 11,
    "sync": 7,
    "heartbeat": 8,
    "leave": 3,
    "commit": 9,
    "fetch": 8,
    "describe": 3,
    "list": 1,
    "delete": 1,
    "drop": 2,
    "restart": 1,
    "evict": 2,
}
BY_VISITOR = {"describe", "list", "delete", "drop", "evict"}
ROUNDS = 3  # of questions to the broker before a silent request counts as parked
GLANCE_S = 0.003


class Run:
    """A seed on a broker."""

    def __init__(self, bootstrap: str, seed: int, name: str | None = None) -> None:
        self.bootstrap = bootstrap
        self.seed = seed
        self.name = name or f"d{uuid.uuid4().hex[:7]}-"
        self.labels = Labels(self.name)
        # brokers hand connections to their network threads in turn: three of ours reach each of three
        self._controls = [Wire(bootstrap, f"control{number}") for number in range(3)]
        self.circles = circles(self.name, lambda client_id: Wire(bootstrap, client_id))
        self.topic_ids = self._topics()
        self._find_coordinator()

    def lines(self, requests: int) -> Iterator[Line]:
        """What came of each of `requests` requests."""
        dice = Random(self.seed)
        for number in range(requests):
            circle, die = dice.choice(self.circles), Random(dice.getrandbits(64))
            kind = dice.choices(list(KINDS), list(KINDS.values()))[0]
            slot = self._free(circle, dice.randrange(len(circle.slots)))
            yield {"n": number, "group": circle.group_id.removeprefix(self.name), **self._turn(die, circle, slot, kind)}

    def close(self) -> None:
        for circle in self.circles:
            for wire in (circle.visitor, *(slot.wire for slot in circle.slots)):
                wire.close()
        for wire in self._controls:
            wire.close()

    # -- one turn

    def _turn(self, die: Random, circle: Circle, slot: Slot | None, kind: str) -> Line:
        if slot is None:  # all of them wait for somebody who is not there
            if kind == "restart" or not self._ghosts(circle):
                return self._give_up(circle)
            kind = "evict"
        if slot is not None and kind == "restart":
            slot.forget()
            kind = "join"
        if kind in BY_VISITOR or slot is None:
            built = self._by_visitor(die, circle, kind)
            return self._done(circle, None, kind, built, circle.visitor.send_request(*built))
        if kind == "advance":
            kind = {"out": "join", "joined": "sync", "in": "heartbeat"}[slot.phase]
        built = self._by_slot(die, circle, slot, kind)
        slot.sent, slot.bound = built[0], self._binds(slot, built[0])
        slot.wire.send(*built)
        return self._done(circle, slot, kind, built, self._answer(circle, slot))

    def _by_visitor(self, die: Random, circle: Circle, kind: str) -> Built:
        match kind:
            case "describe":
                return choices.describe(die, circle)
            case "list":
                return choices.list_groups(die)
            case "delete":
                return choices.delete_groups(die, circle)
            case "drop":
                return offset_choices.drop(die, circle)
            case _:
                return choices.evict(circle)

    def _by_slot(self, die: Random, circle: Circle, slot: Slot, kind: str) -> Built:
        match kind:
            case "join":
                return choices.join(die, circle, slot)
            case "sync":
                return choices.sync(die, circle, slot, self.labels)
            case "heartbeat":
                return choices.heartbeat(die, circle, slot)
            case "leave":
                return choices.leave(die, circle, slot)
            case "commit":
                return offset_choices.commit(die, circle, slot, self.topic_ids)
            case _:
                return offset_choices.fetch(die, circle, slot, self.topic_ids)

    def _binds(self, slot: Slot, request: Any) -> bool:
        """Whether the answer to a join tells the slot who it is: not when it played somebody else."""
        return request.KEY != 11 or (
            request.member_id in ("", slot.member_id) and request.group_instance_id in (None, slot.instance)
        )

    def _done(self, circle: Circle, slot: Slot | None, kind: str, built: Built, answer: Any | None) -> Line:
        request, version = built
        canonical = self.labels.canonical(request)
        released = self._settle(circle, slot) if kind in ("join", "sync", "leave", "evict", "delete") else {}
        if slot is not None and answer is not None:
            released[slot] = answer
        self._name_the_new(released)
        if request.KEY == 13 and answer is not None:
            self._note_left(circle, request, answer)
        line: Line = {
            "kind": kind,
            "slot": slot.client_id if slot else "visitor",
            "version": version,
            "asked": canonical,
        }
        reply = {who.client_id: self.labels.canonical(what) for who, what in released.items()}
        line["answer"] = (reply.pop(slot.client_id, "parked")) if slot else self._own(answer)
        line["released"] = reply
        line["state"] = self._state(circle)
        for who, what in sorted(released.items(), key=lambda item: item[0].number):
            learn(circle, who, what)
        return self._check_leader(circle, line, released)

    def _own(self, answer: Any) -> Any:
        """A visitor's answer; a list of all groups without those of others."""
        if hasattr(answer, "groups") and answer.KEY == 16:
            answer.groups = tuple(found for found in answer.groups if found.group_id.startswith(self.name))
        return self.labels.canonical(answer)

    # -- parked or answered

    def _answer(self, circle: Circle, slot: Slot) -> Any | None:
        """The slot's answer, or None when the request is parked."""
        waits_in = PARKS_IN.get(slot.sent.KEY)
        if waits_in is None or slot.sent.group_id != circle.group_id:
            return self._must(slot)
        for _ in range(ROUNDS):
            answer = slot.wire.answer(GLANCE_S)
            if answer is not None:
                return answer
            if self._state(circle) != waits_in:
                return self._must(slot)
        return slot.wire.answer(GLANCE_S)

    def _settle(self, circle: Circle, actor: Slot | None) -> dict[Slot, Any]:
        """Answers of parked requests that the last request released."""
        state, released = self._state(circle), {}
        for slot in circle.slots:
            if slot.parked and slot is not actor:
                held = PARKS_IN[slot.sent.KEY] == state
                answer = slot.wire.answer(GLANCE_S) if held else self._must(slot)
                if answer is not None:
                    released[slot] = answer
        return released

    def _must(self, slot: Slot) -> Any:
        answer = slot.wire.answer(ANSWER_S_MAX)
        if answer is None:
            raise TimeoutError(f"no answer to {slot.client_id}: {slot.sent}")
        return answer

    def _state(self, circle: Circle) -> str:
        """The group's state, asked for through every control connection."""
        request = DescribeGroupsRequest(groups=(circle.group_id,))
        return [wire.send_request(request, 5) for wire in self._controls][-1].groups[0].group_state

    # -- what the runner remembers

    def _name_the_new(self, released: dict[Slot, Any]) -> None:
        """Labels in the order of slots, before anything else of the answers is named."""
        for slot in sorted(released, key=lambda slot: slot.number):
            if isinstance(released[slot], JoinGroupResponse):
                self.labels[released[slot].member_id]

    def _check_leader(self, circle: Circle, line: Line, released: dict[Slot, Any]) -> Line:
        """Give the group up when its new leader was anybody's guess: Kafka takes the first of a hash map."""
        joins = [what for what in released.values() if isinstance(what, JoinGroupResponse) and what.error_code == 0]
        if not joins:
            return line
        leader = self.labels[joins[0].leader]
        members = max(len(join.members) for join in joins)
        if not self._follows(circle, leader) and members > 1:
            for answer in (line["answer"], *line["released"].values()):
                if isinstance(answer, dict):
                    answer.update({"leader": "any", "members": "the leader's"} if "leader" in answer else {})
            return {**line, "given up": self._give_up(circle)}
        circle.leader = leader
        return line

    def _follows(self, circle: Circle, leader: str) -> bool:
        """Whether this leader was bound to come after the last one: the same, or its instance under a new id."""
        last = circle.leader
        if last in (None, leader):
            return True
        return (
            prefix(last).startswith("i") and prefix(last) == prefix(leader) and not {last, prefix(last)} & circle.left
        )

    def _note_left(self, circle: Circle, request: Any, answer: Any) -> None:
        if answer.error_code == 0:
            left = [who.member_id or who.group_instance_id or "" for who in request.members] or [request.member_id]
            circle.left.update(self.labels[name] for name in left)

    def _give_up(self, circle: Circle) -> Line:
        """Leave the group as it is and go on with a new one."""
        for slot in circle.slots:
            slot.wire.close()
            slot.wire = Wire(self.bootstrap, slot.client_id)
            slot.forget()
            slot.old_ids.clear()
        circle.incarnation += 1
        circle.issued.clear()
        circle.leader = None
        circle.left.clear()
        return {"kind": "new group"}

    def _ghosts(self, circle: Circle) -> bool:
        used = {slot.member_id for slot in circle.slots}
        return any(issued not in used for issued in circle.issued)

    def _free(self, circle: Circle, first: int) -> Slot | None:
        """The first slot from `first` on that waits for nothing."""
        turned = circle.slots[first:] + circle.slots[:first]
        return next((slot for slot in turned if not slot.parked), None)

    def _find_coordinator(self) -> None:
        """Ask as every client does first: a fresh broker creates the topic of offsets by it."""
        request = FindCoordinatorRequest(coordinator_keys=(self.circles[0].group_id,))

        def ready() -> bool:
            found = self._controls[0].send_request(request, 4).coordinators[0]
            return found.error_code == 0 and bool(self._state(self.circles[0]))

        until(ready, "a coordinator")

    def _topics(self) -> dict[str, bytes]:
        """Create two topics of four partitions; their ids by name."""
        names = [f"{self.name}a", f"{self.name}b"]
        wanted = tuple(CreatableTopic(name=name, num_partitions=4, replication_factor=1) for name in names)
        created = self._controls[0].send_request(CreateTopicsRequest(topics=wanted, timeout_ms=10_000), 7)
        assert all(topic.error_code == 0 for topic in created.topics), created
        metadata_request = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))

        def known() -> dict[str, bytes]:
            topics = self._controls[0].send_request(metadata_request, 12).topics
            led = all(len(topic.partitions) == 4 and topic.error_code == 0 for topic in topics)
            return {topic.name: topic.topic_id for topic in topics} if led else {}

        found = until(known, f"topics {names}")
        self.labels.topic_ids = {topic_id: name.removeprefix(self.name) for name, topic_id in found.items()}
        return found
