"""Checks of a recorded history of the clients' calls.

O1, O2  `is_linearizable`: one committed offset is a register that begins at -1
G1      `double_owners`: no partition has two owners in one generation
G2      `disputed_generations`: no member gets two assignments for one generation
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import inf

UNKNOWN = -1


@dataclass(slots=True, eq=False)
class Op:
    """One commit or fetch of one offset. `done` is None when no answer came: it may yet happen, or never."""

    kind: str  # "commit" | "fetch"
    offset: int
    began: float
    done: float | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A member believed to own a partition in that generation, from `since` until `until`."""

    group: str
    generation: int
    partition: int
    member: str
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Notice:
    """What a JoinGroup said of a generation. `members` is None for all but the leader."""

    group: str
    generation: int
    member: str
    leader: str
    members: frozenset[str] | None


def is_linearizable(ops: Iterable[Op], initial: int = UNKNOWN) -> bool:
    """Is there one order of the ops, each within its own interval, that explains every fetch?

    Offsets of commits are distinct. Fetches without an answer say nothing; nor does a commit without an answer that
    nobody ever saw, since it need not have happened.
    """
    ops = list(ops)
    seen = {op.offset for op in ops if op.kind == "fetch" and op.done is not None}
    left = [op for op in ops if op.done is not None or (op.kind == "commit" and op.offset in seen)]
    left.sort(key=lambda op: op.began)
    return _search(left, initial)


def _search(ops: list[Op], initial: int) -> bool:
    todo = [(frozenset(range(len(ops))), initial)]
    known = set(todo)
    while todo:
        left, value = todo.pop()
        if all(ops[i].done is None for i in left):
            return True
        for following in _steps(ops, left, value):
            if following not in known:
                known.add(following)
                todo.append(following)
    return False


def _steps(ops: list[Op], left: frozenset[int], value: int) -> Iterable[tuple[frozenset[int], int]]:
    first_done = min(_latest(ops[i]) for i in left)
    for i in left:
        op = ops[i]
        if op.began > first_done:
            continue
        if op.kind == "commit":
            yield left - {i}, op.offset
        elif op.offset == value:
            yield left - {i}, value


def _latest(op: Op) -> float:
    return inf if op.done is None else op.done


def double_owners(claims: Iterable[Claim]) -> list[tuple[Claim, Claim]]:
    """Pairs of members that owned one partition of one generation at the same moment."""

    def place(claim: Claim) -> tuple[str, int, int]:
        return claim.group, claim.generation, claim.partition

    pairs = []
    for _, same in groupby(sorted(claims, key=lambda claim: (*place(claim), claim.since)), key=place):
        pairs += [(a, b) for a, b in pairwise(same) if a.member != b.member and b.since < a.until]
    return pairs


def disputed_generations(answer: Iterable[Notice]) -> list[tuple[str, int, str]]:
    """(group, generation, why) where two answers about one generation contradict each other."""
    leaders, members, those = (
        dict[tuple[str, int], str](),
        dict[tuple[str, int], frozenset[str]](),
        list[Notice](answer),
    )
    disputes = []
    for item in those:
        which = item.group, item.generation
        if leaders.setdefault(which, item.leader) != item.leader:
            disputes.append((*which, f"led by {leaders[which]} and by {item.leader}"))
        if item.members is not None and members.setdefault(which, item.members) != item.members:
            disputes.append((*which, f"of {sorted(members[which])} and of {sorted(item.members)}"))
    non_members = defaultdict(set)
    for item in those:
        which = item.group, item.generation
        if which in members and item.member not in members[which]:
            non_members[which].add(item.member)
    return disputes + [(*which, f"given to {sorted(who)} as well") for which, who in non_members.items()]
