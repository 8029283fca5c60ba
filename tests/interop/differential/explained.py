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
        reason="Such a group has only offsets. Kafka deletes it at the next check for expired offsets.",
    ),
)

# what the sequence avoids, because Kafka itself does not answer it in the same way twice, or at all
AVOIDED: tuple[tuple[str, str], ...] = (
    (
        "The leader after the leader has left",
        "Kafka takes the first key of a hash map of member ids, which are random. The sequence stops using the group.",
    ),
    (
        "A vote of assignors that ends in a tie",
        "Kafka takes the first of a hash map of assignor names. All members prefer the assignors in one order.",
    ),
    (
        "Two delayed JoinGroups, or two delayed SyncGroups, of one member id",
        "Kafka never answers the first one. Rota answers every request exactly once (law G4).",
    ),
    (
        "A delayed SyncGroup of a member that another client removes",
        "Kafka never answers it. Rota answers 25 (law G4).",
    ),
    (
        "A group whose first request is an OffsetCommit that is refused",
        "Kafka has it in memory only: Dead in DescribeGroups until its first record, whoever joins. Seed 104 draws it.",
    ),
    (
        "A static member that rejoins with another subscription",
        "OffsetDelete and expiry: Kafka uses the old subscription until the next generation, Rota the one in the log.",
    ),
    (
        "The order of members and groups in DescribeGroups, ListGroups, DeleteGroups, JoinGroup",
        "Kafka uses the order of a hash map; they are compared as sets, and so are the partitions of offset responses.",
    ),
)


def table() -> str:
    """The section of docs/NON_OBVIOUS.md, as Markdown."""
    rows = [f"| {why.name} | {why.kafka} | {why.rota} | {why.reason} |" for why in EXPLAINED]
    avoided = [f"- **{what}.** {why}" for what, why in AVOIDED]
    lines = [
        "## Group requests: differences that the differential test accepts",
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
