"""What is checked after each event of a simulated cluster.

Laws
    R1   A leader epoch has one leader in one registration, and only grows; a leader that begins was in the ISR or the
         ELR, and has every record that was ever committed; an unclean election, where one is allowed, leaves its leader
         alone in the ISR (`machines_unclean` says what holds in that topic from then on). Whoever acts as a leader was
         elected in that epoch (R3). The ISR is never empty (R2).
    RA1  A reassignment is complete when each added replica is in the ISR and the ISR has min.insync.replicas: the
         replicas are its target, in that order. Nobody else changes them. The ISR consists of replicas.
    RA2  A cancelled reassignment leaves the replicas of before, and one that replaces another begins with them
         (`reassignment_requested`). Which these are is remembered here, whatever the state says.
    RA3  The leader epoch grows when a replica is removed.
    ELR1 Whoever is in the ELR is not in the ISR, and the ISR is smaller than min.insync.replicas.
    L1   Below any high watermark one offset has one record, for ever; an acknowledged record is at its offset below it.
    L3   A high watermark is at most the log end offset.
    PD1  The committed records of an idempotent producer are 0, 1, 2, …: each once, in order.
    L2   A log that was recovered after a crash is a prefix of what it was, at least up to what had been flushed.
    G1, G2, G3, O1, O2 of what clients saw: `member.Trace.check`, in the end; a history says nothing before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.state import Role
from rota.protocol.records.batch import headers
from rota.protocol.records.record import read_records

if TYPE_CHECKING:
    from tests.simulation.machines_broker import Life
    from tests.simulation.machines_world import MachinesWorld

Entry = tuple[int, bytes | None, bytes | None]  # leader epoch, key and value
Placement = tuple[tuple[int, ...], ...]  # replicas, adding, removing
EVERYTHING_BYTES = 1 << 30
DATA = "t"
NOTHING = 0, Role.FOLLOWER, -1  # of a partition in which nothing has happened


class Laws:
    """`after_event` after each event; `elected` after each change of the store."""

    def __init__(self, world: MachinesWorld) -> None:
        self.world = world
        self.committed: dict[str, list[Entry]] = defaultdict(list)  # by topic and offset
        self._batches: dict[str, dict[int, bytes]] = defaultdict(dict)  # the same as they are in logs
        self.leaders: dict[tuple[str, int], tuple[int, int]] = {}  # (topic, epoch) -> broker, its registration
        self.epochs: dict[str, int] = defaultdict(int)
        self.unclean: dict[str, int] = {}  # by topic: the leader epoch of its last unclean election
        self._eligible: dict[str, set[int]] = {}  # by topic: the ISR and the ELR
        self._placed: dict[str, PartitionState] = {}
        self._requested = defaultdict[int, list[Placement]](list)  # by administrators; by the version of the state
        self._originals = dict[int, frozenset[int]]()  # by version: the replicas from before a reassignment, of DATA
        self.moves = 0  # reassignments that were completed, and added replicas
        self.elections = self.acknowledged = 0
        self.acks: list[tuple[int, int, list[bytes]]] = []  # leader epoch, base offset and values, for the end
        self.deleted = 0  # records of DATA before this offset, in all live replicas
        self._produced: dict[bytes, int] = defaultdict(int)  # by writer: the value that comes next
        self._seen: dict[Partition, tuple[int, Role, int]] = {}
        self.touched: list[Life] = []  # the processes in which something happened

    # ---- the store

    def changed(self, path: str) -> None:
        if not path.endswith("/state"):
            return
        name, node = path.split("/")[3], self.world.store.tree.nodes.get(path)
        if node is not None:
            self.state(name, self.world.read_state(name, node.data, node.version))

    def state(self, name: str, state: PartitionState) -> None:
        """R1, R2, ELR1 of a state that was written."""
        epoch, leadership = state.leader_epoch, (state.leader, state.leader_broker_epoch)
        assert epoch >= self.epochs[name], f"R1: the leader epoch of {name} went back: {state}"
        if epoch > self.epochs[name]:
            self.elections += 1
            self.world.log_line(f"{name}: leader {state.leader} isr {state.isr} elr {state.elr} epoch {epoch}")
            self._elected(name, state)
        self._joined(name, state)
        self._eligible[name] = {*state.isr, *state.elr}
        self._moved(name, state)
        self.epochs[name] = epoch
        known = self.leaders.setdefault((name, epoch), leadership)
        assert known == leadership, f"R1: two leaders of {name} in epoch {epoch}: {known}, {leadership}"
        assert state.isr, f"R2: the ISR of {name} is empty"
        assert state.leader in (-1, *state.isr), f"R1: the leader of {name} is not in the ISR: {state}"
        assert not set(state.elr) & set(state.isr), f"ELR1: a broker is in ISR and ELR of {name}: {state}"
        assert not state.elr or len(state.isr) < self.world.min_isr_max, (
            f"ELR1: the ISR of {name} needs no ELR: {state}"
        )

    def _joined(self, name: str, state: PartitionState) -> None:
        """R1. Whoever enters the ISR has all that is committed. One that has lost records leaves it at its start."""
        eligible, committed = self._eligible.get(name, set(state.isr)), self.committed[name]
        for broker in set(state.isr) - eligible:
            disk = self.world.disks[broker]
            if name in self.unclean or disk.has_possible_data_loss or name in disk.failed:
                continue
            has, all_have = disk.logs[name].log_end_offset, len(committed)
            assert has >= all_have, f"R1: {broker} enters the ISR of {name} with {has} of {all_have} records"

    def _moved(self, name: str, state: PartitionState) -> None:
        """RA1, RA3 of a state that was written."""
        before, self._placed[name] = self._placed.get(name, state), state
        if name == DATA:
            is_moving = state.adding or state.removing
            original = self._originals[before.version] if is_moving else frozenset(state.replicas)
            self._originals[state.version] = original
        assert set(state.isr) <= set(state.replicas), f"RA1: {name} has an ISR elsewhere: {state}"
        if placement(state) not in (placement(before), *self._requested[state.version]):
            self._completed(name, before, state)
        if not set(before.replicas) <= set(state.replicas):
            assert state.leader_epoch > before.leader_epoch, f"RA3: {name} has lost a replica in its epoch: {state}"

    def _completed(self, name: str, before: PartitionState, state: PartitionState) -> None:
        """RA1. The controller has changed the replicas."""
        target = tuple(broker for broker in before.replicas if broker not in before.removing)
        assert placement(state) == (target, (), ()), f"RA1: {name} was moved to other replicas than {target}: {state}"
        assert set(before.adding) <= set(state.isr), f"RA1: {name} was moved to replicas that lack records: {state}"
        is_large_enough = len(state.isr) >= min(self.world.min_isr_min, len(target))
        assert is_large_enough, f"RA1: {name} was moved to too few replicas with all records: {state}"
        self.moves += bool(before.adding)

    def reassignment_requested(self, after: PartitionState, replicas: Sequence[int] | None) -> None:
        """RA1, RA2. An administrator is about to write this state; it wants these replicas, None: those of before."""
        original = self._originals[after.version]
        target = original if replicas is None else frozenset(replicas)
        wanted = target | original, target - original, original - target
        begun = frozenset(after.replicas), frozenset(after.adding), frozenset(after.removing)
        assert begun == wanted, f"RA1, RA2: a reassignment from {set(original)} to {set(target)} begins as {after}"
        self._requested[after.version + 1].append(placement(after))

    def _elected(self, name: str, state: PartitionState) -> None:
        """R1. The leader was in the ISR or the ELR, but for an unclean election."""
        if state.leader in (-1, *self._eligible.get(name, (state.leader,))):
            return
        assert name in self.world.ALLOW_UNCLEAN, f"R1: the leader of {name} was in neither ISR nor ELR: {state}"
        assert (state.isr, state.elr) == ((state.leader,), ()), f"R1: an unclean leader of {name} is not alone: {state}"
        self.world.log_line(f"{name}: that was an unclean election")
        self.unclean[name] = state.leader_epoch

    # ---- replicas

    def after_event(self) -> None:
        seen, touched = self._seen, self.touched
        while touched:
            life = touched.pop()
            if life.tasks.is_stopped:
                continue
            for partition in life.partitions.values():
                state, before = partition.state, seen.get(partition, NOTHING)
                if state.high_watermark != before[0] or state.role is not before[1] or state.leader_epoch != before[2]:
                    now = seen[partition] = state.high_watermark, state.role, state.leader_epoch
                    self._changed(life, partition, before, now)

    def _changed(
        self, life: Life, partition: Partition, before: tuple[int, Role, int], now: tuple[int, Role, int]
    ) -> None:
        name, (high_watermark, role, epoch) = partition.topic, now
        if name in self.unclean:
            pass
        elif high_watermark > before[0]:
            self._check_committed(life, name, partition.log, before[0], high_watermark)
        else:
            assert high_watermark >= before[0] or role is not Role.LEADER, f"L1: the high watermark of {name} went back"
        if role is Role.LEADER and now[1:] != before[1:]:
            elected = self.leaders.get((name, epoch))
            acting = life.broker_id, life.image.own_epoch
            assert elected == acting, f"R3: {acting} leads {name} in epoch {epoch}, not {elected}"
            if name in self.unclean:
                return
            committed, start = self.committed[name], partition.log.log_start_offset
            begin = max(high_watermark, start)
            found = entries(partition.log, begin, len(committed))
            assert name != DATA or start >= self.deleted, f"RE9: leader {acting} has deleted records, from {start} on"
            assert found == committed[begin:], f"R1: leader {acting} lacks committed records of {name}"

    def _check_committed(self, life: Life, name: str, log: Any, begin: int, end: int) -> None:
        """L1. All replicas have the same bytes; those that are new are decoded."""
        offset, batches, committed = max(begin, log.log_start_offset), self._batches[name], self.committed[name]
        while offset < end:
            data = bytes(log.read(offset, EVERYTHING_BYTES, until=end))
            assert data, f"L3: the high watermark {end} of {name} is beyond the log of broker {life.broker_id}"
            for position, header in headers(data, cut=True):
                batch = data[position : position + header.size_bytes]
                if header.base_offset == len(committed):
                    batches[header.base_offset] = batch
                    self._commit(name, header.leader_epoch, batch)
                known = batches.get(header.base_offset)
                place = f"{header.base_offset} of {name}"
                assert batch == known, f"L1: broker {life.broker_id} has other records from {place} on"
                offset = header.next_offset

    def _commit(self, name: str, leader_epoch: int, batch: bytes) -> None:
        for record in read_records(batch, 0):
            entry = leader_epoch, record.key, record.value
            self.committed[name].append(entry)
            if name == "t":
                self._check_produced(entry)

    def _check_produced(self, entry: Entry) -> None:
        writer, _, number = (entry[2] or b"").partition(b".")
        expected = self._produced[writer]
        assert int(number) == expected, f"PD1: record {int(number)} of {writer!r} is committed, {expected} comes next"
        self._produced[writer] += 1

    def acked(self, values: list[bytes], base_offset: int, leader_epoch: int) -> None:
        """L1. An acknowledgement has come to its producer, from the leader of that epoch."""
        self.acknowledged += 1
        if self.world.ALLOW_UNCLEAN:
            self.acks.append((leader_epoch, base_offset, values))
        if DATA in self.unclean:
            return
        found = [entry[2] for entry in self.committed["t"][base_offset : base_offset + len(values)]]
        assert found == values, f"L1: {values} are acknowledged at {base_offset}, where {found} is committed"

    # ---- disks

    def crash(self, log: MemoryLog, kept_bytes: int, *, flushed: int) -> None:
        """L2. Lose what was not synced, but for some bytes; `flushed` is where the log ended at its last flush."""
        before = entries(log, 0, log.log_end_offset)
        log.crash(kept_bytes)
        after = entries(log, 0, log.log_end_offset)
        assert after == before[: len(after)], "L2: the recovered log is no prefix"
        end = log.log_end_offset
        assert end >= flushed, f"L2: {end} records are left of {flushed} that were flushed"


def placement(state: PartitionState) -> Placement:
    return state.replicas, state.adding, state.removing


def entries(log: Any, begin: int, end: int) -> list[Entry]:
    """The records from one offset to another, fewer where the log ends."""
    found: list[Entry] = []
    offset = begin = max(begin, log.log_start_offset)
    while offset < min(end, log.log_end_offset):
        data = bytes(log.read(offset, EVERYTHING_BYTES))
        for position, header in headers(data, cut=True):
            found += [
                (header.leader_epoch, record.key, record.value)
                for record in read_records(data, position)
                if begin <= record.offset < end
            ]
            offset = header.next_offset
    return found
