"""How the operations of a large change are split into commits that the metadata store accepts. Pure.

Who commits them orders the operations so that readers ignore all of them until the last commit (`topic_nodes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

OPS_PER_COMMIT_MAX: Final = 1_000  # of at most about 900 bytes, chroot and ACLs included: below jute.maxbuffer

T = TypeVar("T")


def split(changes: Iterable[T], other_ops: int) -> Iterator[list[T]]:
    """The changes in their order, as many at a time as one commit accepts besides `other_ops` operations."""
    remaining = iter(changes)
    while portion := list(islice(remaining, OPS_PER_COMMIT_MAX - other_ops)):
        yield portion
