"""`/api/groups` and `/api/group…` of a live broker with real members."""

from __future__ import annotations

from tests.chaos.requests import batch, create_topic, produce
from tests.unit.coordinator.web.conftest import World, members

GROUP = "a group/with?a&name"
QUERY = "group=a%20group%2Fwith%3Fa%26name"


async def test_a_group_is_shown_with_members_and_lag(world: World) -> None:
    await create_topic(world.kafka, "t", 4)
    await world.kafka.send_request(produce(1, batch(b"one", b"two")), 9)
    async with members(world, GROUP, 2) as consumers:
        await consumers[0].commit()
        listed = await world.read("/api/groups")
        assert [(each["group"], each["state"]) for each in listed["groups"]] == [(GROUP, "Stable")]
        shown = await world.read(f"/api/group?{QUERY}")
        assert sorted(member["client_id"] for member in shown["members"]) == ["client-0", "client-1"]
        owned = [(each["topic"], each["partition"]) for member in shown["members"] for each in member["partitions"]]
        assert sorted(owned) == [("t", index) for index in range(4)]
        lag = await world.read(f"/api/group/lag?{QUERY}")
        assert [partition["end"] for partition in lag["partitions"]] == [0, 2, 0, 0]
        assert all(partition["member_id"] for partition in lag["partitions"])
        for path in ("timeline", "why", "health"):
            assert (await world.read(f"/api/group/{path}?{QUERY}"))["group"] == GROUP
