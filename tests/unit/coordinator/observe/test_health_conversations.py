"""The health rules on timelines of real behaviour: what conversations with the group machine leave behind."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.coordinator.group.script import SUBSCRIPTION, Script, commit, fires, join, leave, sync
from tests.unit.coordinator.group.test_moves import part

from rota.coordinator.group.events import Event, InstanceId, Join, MemberId, Proto
from rota.coordinator.group.timeline_event import event_of
from rota.coordinator.observe.finding import Code, Finding
from rota.coordinator.observe.health import findings
from rota.coordinator.observe.timeline import Timelines
from rota.coordinator.runtime.contract import Note

START_MS = 1_700_000_000_000


class Life:
    """A conversation whose notes go into a timeline with the time of the conversation."""

    def __init__(self) -> None:
        self.script = Script()
        self.timelines = Timelines()
        self.token = 0

    def does(self, event: Event) -> Life:
        self.script.does(event)
        self.keep(self.script.notes)
        self.script.notes.clear()
        return self

    def keep(self, notes: list[Note]) -> None:
        for note in notes:
            event = event_of(note, START_MS + self.script.now_ms, 1)
            if event is not None:
                self.timelines.add("g", event)

    def after(self, ms: int) -> Life:
        self.script.after(ms)
        return self

    def next_token(self) -> int:
        self.token += 1
        return self.token

    def joins(self, member: str, *, new: bool = True, **settings: object) -> Life:
        """A JoinGroup of the client whose id is that of the member without its number."""
        request: Join = join(self.next_token(), "" if new else member, new=member, **settings)  # type: ignore[arg-type]
        return self.does(replace(request, client_id=member.split("-")[0]))

    def syncs(self, generation: int, *members: str, partitions: int = 4) -> Life:
        """The first member assigns the partitions in turn; all fetch their part."""
        shares = {name: part(*range(at, partitions, len(members))) for at, name in enumerate(members)}
        for name in members:
            self.does(sync(self.next_token(), name, generation, shares))
        return self

    def found(self) -> dict[str, Finding]:
        now_ms = START_MS + self.script.now_ms + 1
        return {finding.code: finding for finding in findings(self.timelines.of("g"), None, now_ms)}


def of_one() -> Life:
    return Life().joins("a-1").does(fires("join")).syncs(1, "a-1")


def test_a_healthy_life_has_no_finding() -> None:
    life = of_one().after(1_000).joins("b-1").joins("a-1", new=False).syncs(2, "a-1", "b-1")
    life.after(60_000).does(leave(life.next_token(), "b-1", reason="the consumer is being closed"))
    life.joins("a-1", new=False).syncs(3, "a-1")
    assert life.found() == {}


def test_a_member_that_flaps() -> None:
    life = of_one()
    for number in range(3):
        life.after(5_000).joins(f"b-{number}").joins("a-1", new=False)
        life.syncs(life.script.group.generation, "a-1", f"b-{number}")
        life.after(5_000).does(leave(life.next_token(), f"b-{number}")).joins("a-1", new=False)
        life.syncs(life.script.group.generation, "a-1")
    assert life.found()[Code.MEMBER_FLAPS].subject == "member b (127.0.0.1)"


def test_a_member_that_polls_too_late() -> None:
    life = of_one()
    for number in range(2):
        life.after(5_000).joins(f"b-{number}").joins("a-1", new=False)
        life.syncs(life.script.group.generation, "a-1", f"b-{number}")
        life.after(5_000).does(leave(life.next_token(), f"b-{number}", reason="consumer poll timeout has expired."))
        life.joins("a-1", new=False).syncs(life.script.group.generation, "a-1")
    assert list(life.found()) == [Code.POLL_INTERVAL_EXCEEDED]


def test_a_static_id_that_is_used_twice() -> None:
    life = Life().joins("a-1", instance="i").does(fires("join")).syncs(1, "a-1")
    life.after(5_000).joins("b-1", instance="i")
    assert life.found() == {}
    effects = life.script.group.fenced_heartbeat(MemberId("a-1"), InstanceId("i"), life.script.now_ms, 0)
    life.keep([effect for effect in effects if isinstance(effect, Note)])
    assert life.found()[Code.STATIC_ID_USED_TWICE].subject == "static member i"


def test_a_leader_that_is_slow_to_assign() -> None:
    life = Life().joins("a-1").does(fires("join")).after(4_000).syncs(1, "a-1")
    life.joins("a-1", new=False).after(5_000).syncs(2, "a-1")
    assert "up to 5.0 s" in life.found()[Code.SLOW_ASSIGNMENT].sentence


def test_an_assignor_that_the_group_does_not_share() -> None:
    life = of_one().joins("b-1", protocols=(Proto("sticky", SUBSCRIPTION),))
    assert "it supports sticky; the group's members share range" in life.found()[Code.ASSIGNOR_MISMATCH].sentence


def test_more_members_than_partitions() -> None:
    life = of_one().joins("b-1").joins("a-1", new=False).syncs(2, "a-1", "b-1", partitions=1)
    assert list(life.found()) == [Code.IDLE_MEMBERS]


def test_a_group_that_never_stabilizes() -> None:
    life = of_one()
    for generation in range(2, 50):
        life.after(10_000).joins("a-1", new=False).syncs(generation, "a-1")
    assert "most of them by member a" in life.found()[Code.NEVER_STABLE].sentence


def test_commits_that_are_refused() -> None:
    life = of_one()
    for _ in range(10):
        life.does(commit(-5, "a-1", 7))
    assert life.found()[Code.COMMITS_REFUSED].count == 10
