"""FD3, FD4, FD5: clusters of failure detectors on randomly generated networks.

The bounds are computed from the settings: one round of pings to all members, two ping timeouts and one suspicion
timeout after gossip; each is multiplied by the worst health level.
"""

from __future__ import annotations

from random import Random

from tests.simulation.swim_world import Network, SwimWorld

from rota.coordinator.membership.datagrams import Status
from rota.coordinator.membership.probes import HEALTH_MAX
from rota.coordinator.membership.swim import DEAD_PING_INTERVALS, HEARSAY_FACTOR, SILENT_ROUNDS

ALIVE, DEAD = {Status.ALIVE}, {Status.DEAD}
WARM_UP_MS = 2_000
CUT_OFF_MS = 6_000
LOSS_MAX = 0.2


def a_world(seed: int, fewest: int = 2, *, loss_max: float = LOSS_MAX) -> tuple[SwimWorld, Random]:
    """A cluster of up to nine, all of which have heard each other."""
    random = Random(seed)
    world = SwimWorld(seed, random.randint(fewest, 9))
    world.run(WARM_UP_MS)
    delay_ms = (0, random.choice((1, 5, 25)))
    world.network = Network(random.uniform(0, loss_max), random.choice((0, 0.1)), delay_ms)
    return world, random


def detection_ms(world: SwimWorld) -> int:
    """How long a death may stay undetected."""
    settings, factor = world.settings, HEALTH_MAX + 1
    silence_ms = 2 * settings.ping_timeout_ms + HEARSAY_FACTOR * settings.suspicion_timeout_ms
    rounds_ms = (2 + SILENT_ROUNDS) * len(world.nodes) * settings.interval_ms
    return rounds_ms + silence_ms * factor


def assert_agreed(world: SwimWorld) -> None:
    for of in world.nodes:
        seen = {
            (world.nodes[by].swim.members[of].incarnation, world.status(by, of)) for by in world.alive() if by != of
        }
        assert len(seen) <= 1, (of, seen)


def test_lost_late_and_duplicate_datagrams_declare_no_broker_dead(swim_seed: int) -> None:
    world, _ = a_world(swim_seed)
    world.run(20_000)
    assert world.deaths() == []


def test_the_dead_are_declared_dead_by_all_in_time(swim_seed: int) -> None:
    world, random = a_world(swim_seed)
    killed = random.sample(list(world.nodes), random.randint(1, len(world.nodes) - 1))
    for broker_id in killed:
        world.kill(broker_id)
    world.run(detection_ms(world))
    assert [world.statuses(broker_id) for broker_id in killed] == [DEAD] * len(killed)
    assert {of for _, _, of in world.deaths()} == set(killed)
    world.run(2_000)
    assert_agreed(world)


def test_evidence_never_kills_one_that_answers(swim_seed: int) -> None:
    world, random = a_world(swim_seed)
    for _ in range(100):
        by, of = random.sample(list(world.nodes), 2)
        world.accuse(by, of)
        world.run(random.randrange(100))
    assert world.deaths() == []


def test_a_partitioned_cluster_merges_again(swim_seed: int) -> None:
    world, random = a_world(swim_seed)
    ids = list(world.nodes)
    random.shuffle(ids)
    size = random.randint(1, len(ids) - 1)
    world.cut(set(ids[:size]), set(ids[size:]), both=True)
    world.run(random.randrange(detection_ms(world) * 2))
    world.heal()
    world.run(DEAD_PING_INTERVALS * world.settings.interval_ms * 2 * len(ids) + detection_ms(world))
    assert [world.statuses(broker_id) for broker_id in ids] == [ALIVE] * len(ids)
    world.network = Network()
    world.run(2_000)
    assert_agreed(world)


def test_brokers_that_were_cut_off_declare_others_dead_to_themselves_alone(swim_seed: int) -> None:
    """FD16. Nobody has fenced them when they are back: they are heard, and gossip."""
    world, random = a_world(swim_seed, 3, loss_max=0)
    cut_off = set(random.sample(list(world.nodes), random.randint(1, len(world.nodes) - 2)))
    others = set(world.nodes) - cut_off
    world.cut(cut_off, others)
    world.run(CUT_OFF_MS)
    world.heal()
    world.run(detection_ms(world))
    deaths = world.deaths()
    assert any(by in cut_off and of in others for _, by, of in deaths)
    assert [(by, of) for _, by, of in deaths if by in others and of in others] == []


def test_a_pair_without_a_link_is_alive_by_indirect_pings(swim_seed: int) -> None:
    """In one direction and in both."""
    world, random = a_world(swim_seed, 3, loss_max=0.05)
    one, other = random.sample(list(world.nodes), 2)
    world.cut({one}, {other}, both=random.random() < 0.5)
    world.run(10_000)
    assert world.deaths() == []


def test_a_broker_that_can_only_receive_declares_no_broker_dead(swim_seed: int) -> None:
    world, random = a_world(swim_seed, 3, loss_max=0.05)
    mute = random.choice(list(world.nodes))
    world.cut({mute}, set(world.nodes) - {mute}, both=False)
    world.run(detection_ms(world))
    assert world.statuses(mute) == DEAD
    assert {of for _, _, of in world.deaths()} == {mute}


def test_a_broker_that_can_only_send_does_not_affect_the_others(swim_seed: int) -> None:
    """It believes that the others are gone; those may believe that it is."""
    world, random = a_world(swim_seed, 3, loss_max=0.05)
    deaf = random.choice(list(world.nodes))
    world.cut(set(world.nodes) - {deaf}, {deaf}, both=False)
    world.run(detection_ms(world))
    assert {of for _, by, of in world.deaths() if by != deaf} <= {deaf}


def test_a_broker_after_a_standstill_declares_no_broker_dead(swim_seed: int) -> None:
    world, random = a_world(swim_seed)
    frozen = random.sample(list(world.nodes), random.randint(1, len(world.nodes)))
    at_once_ms = random.choice((0, random.randrange(600, 60_000)))  # 0: each for a time of its own
    for broker_id in frozen:
        world.freeze(broker_id, at_once_ms or random.randrange(600, 60_000))
    world.run(60_000)
    assert {of for _, _, of in world.deaths()} <= set(frozen)
    if at_once_ms and len(frozen) == len(world.nodes):
        assert world.deaths() == []
    world.run(DEAD_PING_INTERVALS * world.settings.interval_ms * 2 * len(world.nodes) + detection_ms(world))
    assert [world.statuses(broker_id) for broker_id in world.nodes] == [ALIVE] * len(world.nodes)


def test_members_agree_while_brokers_join_and_leave(swim_seed: int) -> None:
    """Registrations change and are read late, by one after the other."""
    world, random = a_world(swim_seed, 3)
    for _ in range(10):
        broker_id = random.choice(list(world.nodes))
        if world.nodes[broker_id].is_dead:
            world.start(broker_id)
        elif len(world.alive()) > 2:
            world.kill(broker_id)
        for reader in random.sample(list(world.nodes), len(world.nodes)):
            world.publish(reader)
            world.run(random.randrange(60))
        world.run(random.randrange(2_000))
    world.publish()
    world.network = Network()
    world.run(2_000 + detection_ms(world))
    dead = [broker_id for broker_id in world.nodes if broker_id not in world.alive()]
    assert [world.statuses(broker_id) for broker_id in world.alive()] == [ALIVE] * len(world.alive())
    for broker_id in dead:
        if any(world.nodes[by].swim.members[broker_id].last_received_ms is not None for by in world.alive()):
            assert world.statuses(broker_id) == DEAD
    assert_agreed(world)


def test_a_seed_reproduces_its_run() -> None:
    def run_trace(seed: int) -> tuple[dict[int, int], list[tuple[int, int, int]]]:
        world, _ = a_world(seed)
        world.kill(1)
        world.run(5_000)
        return world.sent, world.deaths()

    assert run_trace(1) == run_trace(1)
    assert run_trace(1) != run_trace(2)
