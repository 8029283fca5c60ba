"""The base of assignors without state. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rota.client.group.assignors.base import RebalanceProtocol
from rota.client.types import TopicPartition


class StatelessAssignor:
    """An eager assignor without user data."""

    @property
    def supports(self) -> frozenset[RebalanceProtocol]:
        return frozenset({RebalanceProtocol.EAGER})

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        return None

    def on_assignment(self, partitions: Sequence[TopicPartition], user_data: bytes | None, generation_id: int) -> None:
        """There is nothing to remember."""
