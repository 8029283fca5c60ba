"""Where Rota answers otherwise than Kafka, and why. docs/NON_OBVIOUS.md has the same table, written from this one:

python -m tests.interop.differential.explained
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Explained:
    """One kind of difference: in requests of `kind`, at places that match `where`, from `kafka` to `rota`."""

    name: str
    kind: str
    where: str  # a regular expression over the path, such as `\\.answer\\.leader`
    kafka: Any
    rota: Any
    reason: str

    def covers(self, kind: str, at: str, kafka: Any, rota: Any) -> bool:
        return kind == self.kind and bool(re.fullmatch(self.where, at)) and (kafka, rota) == (self.kafka, self.rota)


EXPLAINED: tuple[Explained, ...] = (
    Explained(
        name="The last offset of a group without members is deleted",
        kind="drop",
        where=r"\.state",
        kafka="Empty",
        rota="Dead",
        reason="Such a group is nothing but its offsets. Kafka drops it at the next look for expired offsets.",
    ),
)

# what the sequence avoids, because Kafka itself does not answer it in the same way twice, or at all
AVOIDED: tuple[tuple[str, str], ...] = (
    (
        "Who leads after the leader left",
        "Kafka takes the first key of a hash map of member ids, which are random. The sequence gives the group up.",
    ),
    (
        "A vote of assignors that ends in a tie",
        "Kafka takes the first of a hash map of assignor names. The members of the sequence prefer in one order.",
    ),
    (
        "Two parked joins, or two parked syncs, of one member id",
        "Kafka forgets the first and never answers it. Rota answers every request exactly once (law G4).",
    ),
    (
        "A parked sync of a member that somebody else has leave",
        "Kafka never answers it. Rota answers 25 (law G4).",
    ),
    (
        "A static member that comes back with another subscription",
        "OffsetDelete and expiry: Kafka goes by the old one until the next generation, Rota by the one in the log.",
    ),
    (
        "The order of members and groups in DescribeGroups, ListGroups, JoinGroup",
        "That of a hash map in Kafka; compared as sets. So are the partitions of answers about offsets.",
    ),
)


def table() -> str:
    """The section of docs/NON_OBVIOUS.md, as Markdown."""
    rows = [f"| {why.name} | {why.kafka} | {why.rota} | {why.reason} |" for why in EXPLAINED]
    avoided = [f"- **{what}.** {why}" for what, why in AVOIDED]
    lines = [
        "## Group requests: what the differential test knows",
        "",
        "The same random requests go to Apache Kafka and to Rota (tests/interop/differential). These differences are",
        "explained:",
        "",
        "| what | Kafka | Rota | why |",
        "|---|---|---|---|",
        *rows,
        "",
        "And these are not compared:",
        "",
        *avoided,
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
