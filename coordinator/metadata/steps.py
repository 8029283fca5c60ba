"""A change that is too large for one commit becomes several, of which the last makes it visible.

The nodes of a topic with thousands of partitions exceed what ZooKeeper takes at once (jute.maxbuffer). Whoever changes
them orders the operations so that readers ignore all of them until the last one has been applied: to create a topic,
first its node without partitions, then what is below it, then set the node with the partitions; to delete one, first
set the node without partitions.
"""

from __future__ import annotations

from collections.abc import Sequence

from rota.coordinator.metadata.store import Check, Create, Op, Set, Store

OP_BYTES = 256  # of an operation besides its path and data, with the chroot and the ACL


def split(ops: Sequence[Op], bytes_max: int) -> list[list[Op]]:
    """The operations in their order, in as few commits of at most `bytes_max` as that allows."""
    steps: list[list[Op]] = []
    step_bytes = bytes_max
    for op in ops:
        op_bytes = _size_bytes(op)
        if step_bytes + op_bytes > bytes_max:
            steps.append([])
            step_bytes = 0
        steps[-1].append(op)
        step_bytes += op_bytes
    return steps


async def commit_in_steps(store: Store, ops: Sequence[Op], *, checks: Sequence[Check] = ()) -> None:
    """Commit `ops`, at once when the store takes them at once, else in several commits one after the other.

    The last operation takes effect after all others. `checks` are part of each commit, such as that of the controller's
    epoch. Raises what `Store.commit` raises; the commits before that one stay.
    """
    room_bytes = store.commit_bytes_max - sum(map(_size_bytes, checks))
    for step in split(ops, room_bytes):
        await store.commit([*checks, *step])


def _size_bytes(op: Op) -> int:
    return OP_BYTES + len(op.path.encode()) + (len(op.data) if isinstance(op, Create | Set) else 0)
