"""What transactional producers and read_committed readers did, and the checks of the laws on it. Pure.

Laws
    XS1  Atomicity: of a transaction all records are visible at their offsets, each once, and its offsets are committed,
         or nothing of it is: all if the commit was acknowledged, nothing if the abort was, or neither was asked for.
    XS2  Isolation: a reader gets no record, and no offset, of a transaction whose commit was not asked for; what it
         gets of a partition is what is committed up to there, with no gaps, at every moment.
    XS3  Zombies: when a later producer of the transactional id has its epoch, no commit that is asked for by an earlier
         one happens.
    XS4  In the end no transaction is open, whoever has crashed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from rota.client.types import TopicPartition
from rota.protocol.records.batch import headers
from rota.protocol.records.control import read_marker
from rota.protocol.records.record import read_records

Placed = tuple[int, bytes]  # an offset and the value there
Identity = tuple[int, int]  # a producer id and its epoch


class Outcome(Enum):
    """What the producer knows of a transaction."""

    OPEN = "no commit was asked for"
    REQUESTED = "a commit was asked for, and maybe done"
    COMMITTED = "the commit was acknowledged"
    ABORTED = "the abort was acknowledged"


@dataclass(slots=True, eq=False)
class Transaction:
    """`records`: the partition of each. `offset`: what it commits for the group; None if it does not."""

    name: str
    place: int
    records: list[TopicPartition] = field(default_factory=list)
    offset: int | None = None
    outcome: Outcome = Outcome.OPEN
    is_zombie: bool = False  # its commit was asked for by a producer that had been replaced

    @property
    def values(self) -> list[bytes]:
        return [f"{self.name}/{number}".encode() for number in range(len(self.records))]


@dataclass(slots=True)
class Log:
    """What lies in a partition: `committed` and `aborted` in order, and the records of `open` transactions."""

    committed: list[Placed] = field(default_factory=list)
    aborted: list[Placed] = field(default_factory=list)
    open: list[Placed] = field(default_factory=list)

    @classmethod
    def of(cls, data: bytes) -> Log:
        """Decide by the markers alone, without the broker's indexes."""
        log, ongoing = cls(), defaultdict[int, list[Placed]](list)
        for position, header in headers(data):
            if header.is_control:
                marker = read_marker(data, position)
                if marker is not None:
                    ended = ongoing.pop(header.producer_id, [])
                    (log.committed if marker.is_commit else log.aborted).extend(ended)
                continue
            assert header.is_transactional
            placed = [(record.offset, record.value or b"") for record in read_records(data, position)]
            ongoing[header.producer_id] += placed
        log.committed.sort()
        log.open = [placed for left in ongoing.values() for placed in left]
        return log


class TransactionHistory:
    """One for a world. A place is a transactional id; its producers are numbered."""

    def __init__(self) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.identities: dict[int, dict[int, Identity]] = defaultdict(dict)  # the first of each producer, by place
        self.reads: dict[str, dict[TopicPartition, list[Placed]]] = {}  # by reader
        self._offsets = 0

    # ---- producers

    def initialized(self, place: int, producer: int, identity: Identity) -> None:
        """The producer has its epoch. Not always in the order in which the epochs were given."""
        self.identities[place][producer] = identity

    def begin(self, place: int, producer: int, number: int) -> Transaction:
        name = f"{place}.{producer}/{number}"
        transaction = self.transactions[name] = Transaction(name, place)
        return transaction

    def next_offset(self) -> int:
        """Greater than any before."""
        self._offsets += 1
        return self._offsets

    def commit_requested(self, transaction: Transaction, producer: int) -> None:
        transaction.outcome = Outcome.REQUESTED
        known = self.identities[transaction.place]
        transaction.is_zombie = known[producer] < max(known.values())

    def committed(self, transaction: Transaction) -> None:
        assert not transaction.is_zombie, f"XS3: {transaction.name} was committed by a producer that was replaced"
        transaction.outcome = Outcome.COMMITTED

    def count(self, outcome: Outcome) -> int:
        return sum(transaction.outcome is outcome for transaction in self.transactions.values())

    # ---- readers

    def read(self, reader: str, partition: TopicPartition, offset: int, value: bytes) -> None:
        """A read_committed reader gets a record."""
        self._check_requested(
            self.transactions[value.decode().rpartition("/")[0]], f"{value!r} at {partition}@{offset}"
        )
        self.reads.setdefault(reader, defaultdict(list))[partition].append((offset, value))

    def acknowledged(self, place: int) -> int:
        """The greatest offset of the place whose commit was acknowledged; -1 if there is none."""
        return max((t.offset or -1 for t in self._of(place) if t.outcome is Outcome.COMMITTED), default=-1)

    def read_offset(self, place: int, offset: int, acknowledged: int) -> None:
        """A stable offset is read; `acknowledged` is what `acknowledged` was before it was asked for."""
        assert offset >= acknowledged, f"XS1: offset {offset} of {place} after {acknowledged} was acknowledged"
        for transaction in self._of(place):
            if transaction.offset == offset:
                self._check_requested(transaction, f"offset {offset}")

    def _of(self, place: int) -> list[Transaction]:
        return [transaction for transaction in self.transactions.values() if transaction.place == place]

    @staticmethod
    def _check_requested(transaction: Transaction, what: str) -> None:
        is_requested = transaction.outcome in (Outcome.REQUESTED, Outcome.COMMITTED)
        assert is_requested, f"XS2: {what} of {transaction.name} was read; {transaction.outcome.value}"

    # ---- the end

    def check(self, logs: Mapping[TopicPartition, Log], offsets: Mapping[int, int]) -> None:
        """`offsets` are what is committed in the end, by place; -1 is nothing."""
        for partition, log in logs.items():
            assert not log.open, f"XS4: {partition} has open transactions: {log.open[:5]}"
            for name, read in self.reads.items():
                self._check_read(name, partition, read.get(partition, []), log.committed)
        for transaction in self.transactions.values():
            self._check_transaction(transaction, logs)
        for place, offset in offsets.items():
            visible = [t.offset for t in self._of(place) if t.offset and self._visible(t, logs)]
            expected = max(visible, default=-1)
            assert offset == expected, f"XS1: the offset of {place} is {offset}, and {expected} is committed"

    def _check_read(self, name: str, partition: TopicPartition, read: list[Placed], committed: list[Placed]) -> None:
        if read:
            expected = [placed for placed in committed if placed[0] <= read[-1][0]]
            assert read == expected, f"XS2: {name} read of {partition} {_difference(read, expected)}"

    def _check_transaction(self, transaction: Transaction, logs: Mapping[TopicPartition, Log]) -> None:
        name, outcome, visible = transaction.name, transaction.outcome, self._visible(transaction, logs)
        expected = Counter(zip(transaction.records, transaction.values, strict=True))
        if visible:
            assert outcome in (Outcome.REQUESTED, Outcome.COMMITTED), f"XS1: {name} is visible; {outcome.value}"
            assert not transaction.is_zombie, f"XS3: {name} is visible; its producer had been replaced"
            assert visible == expected, f"XS1: of {name} only a part is visible, or twice: {visible} of {expected}"
        assert visible or outcome is not Outcome.COMMITTED, f"XS1: {name} is not visible; {outcome.value}"

    @staticmethod
    def _visible(transaction: Transaction, logs: Mapping[TopicPartition, Log]) -> Counter[tuple[TopicPartition, bytes]]:
        values = set(transaction.values)
        return Counter(
            (partition, value) for partition, log in logs.items() for _, value in log.committed if value in values
        )


def _difference(read: Iterable[Placed], expected: Iterable[Placed]) -> str:
    read, expected = set(read), set(expected)
    return f"wrongly {sorted(read - expected)[:5]}, and not {sorted(expected - read)[:5]}"
