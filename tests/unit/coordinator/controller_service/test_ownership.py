from __future__ import annotations

from rota.coordinator.controller_service.ownership import Controller, ControllerNode
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import WatchEvent
from rota.coordinator.metadata.tree_session import TreeSession


def nodes() -> tuple[SharedTree, ControllerNode, ControllerNode]:
    shared = SharedTree()
    first, second = (ControllerNode(TreeSession(shared), broker_id, lambda: 0) for broker_id in (1, 2))
    return shared, first, second


async def test_one_broker_is_elected_in_a_new_epoch() -> None:
    shared, first, second = nodes()
    seen_by_one, seen_by_two = [await node.read(lambda _: None) for node in (first, second)]
    assert seen_by_one == seen_by_two == Controller(None, False, 0, 0)
    assert await first.claim(seen_by_one) == Controller(1, True, 1, 1)
    assert await second.claim(seen_by_two) is None
    assert await first.read(lambda _: None) == Controller(1, True, 1, 1)
    assert await second.read(lambda _: None) == Controller(1, False, 1, 1)
    await shared.close()


async def test_a_dead_controller_is_replaced_and_never_a_later_one() -> None:
    shared, first, second = nodes()
    three = ControllerNode(TreeSession(shared), 3, lambda: 0)
    await first.claim(await first.read(lambda _: None))
    seen_by_two, seen_by_three = [await node.read(lambda _: None) for node in (second, three)]
    assert await second.claim(seen_by_two) == Controller(2, True, 2, 2)
    assert await three.claim(seen_by_three) is None
    assert (await three.read(lambda _: None)).broker_id == 2
    await shared.close()


async def test_the_watch_reports_the_next_change() -> None:
    shared, first, second = nodes()
    events: list[WatchEvent] = []
    await second.read(events.append)
    await first.claim(await first.read(lambda _: None))
    assert [event.path for event in events] == [znodes.CONTROLLER]
    await shared.close()


async def test_only_the_last_controller_resigns() -> None:
    shared, first, second = nodes()
    mine = await first.claim(await first.read(lambda _: None))
    assert mine is not None
    later = await second.claim(await second.read(lambda _: None))
    assert later is not None
    await first.resign(mine)
    assert znodes.CONTROLLER in shared.tree.nodes
    await second.resign(later)
    assert znodes.CONTROLLER not in shared.tree.nodes
    await shared.close()
