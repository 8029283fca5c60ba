from __future__ import annotations

from tests.unit.coordinator.consumer_group.script import Script, id_of

from rota.coordinator.consumer_group.description import describe
from rota.coordinator.consumer_group.state import ConsumerGroupState


def test_a_member_is_shown_with_what_it_has_still_to_revoke() -> None:
    script = Script()
    script.join("a", "t")
    script.join("b", "t")
    script.heartbeat("a", 2)
    found = describe(script.group)
    assert (found.state, found.epoch, found.target_epoch, found.assignor) == (
        ConsumerGroupState.RECONCILING, 3, 3, "uniform",
    )  # fmt: skip
    a, b = found.members
    assert a.assigned == ((id_of("t"), "t", (0, 1, 2, 3)),)
    assert a.target == ((id_of("t"), "t", (0, 1)),)
    assert (b.assigned, b.target) == ((), ((id_of("t"), "t", (2, 3)),))


def test_a_topic_that_was_deleted_is_left_out() -> None:
    script = Script()
    script.join("a", "t")
    script.topics.delete("t")
    assert describe(script.group).members[0].assigned == ()
