"""The assignors of the coordinator: the same partitions as Kafka's classes of these names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rota.coordinator.consumer_group.assignors import ranges, uniform
from rota.coordinator.consumer_group.assignors.spec import GroupSpec
from rota.coordinator.consumer_group.member import Partitions

Assignor = Callable[[GroupSpec], dict[str, Partitions]]  # returns the partitions of each member

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform.assign, "range": ranges.assign}
