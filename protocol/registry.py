"""The APIs that can be encoded and decoded: key, name, versions, message types, in the order of Kafka's keys.

Versions are here and in the message files, so that the list is available without loading these; a test compares them.

The ApiVersions response (for the APIs that `coordinator/api/routes.py` serves) and docs/APIS.md are made from this
list: `python -m rota.protocol.registry` prints the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from rota.protocol.dataclass import dataclass
from rota.protocol.wire import NEVER


@dataclass(frozen=True, slots=True)
class Api:
    """One API; `flexible` is the first flexible version, or NEVER.

    Its messages are loaded at their first use: a broker serves its first client without most of them.
    """

    key: int
    name: str
    versions: range
    flexible: int

    @property
    def request(self) -> type[Any]:
        """The dataclass of a request."""
        message: type[Any] = getattr(self._module, f"{self.name}Request")
        return message

    @property
    def response(self) -> type[Any]:
        """The dataclass of a response."""
        message: type[Any] = getattr(self._module, f"{self.name}Response")
        return message

    @property
    def _module(self) -> ModuleType:
        return import_module(f"rota.protocol.messages.{snake_case(self.name)}")

    @property
    def title(self) -> str:
        """The first line of the docstring of the message file."""
        return self._head[0]

    @property
    def notes(self) -> str:
        """The changes of each version on one line: the rest of the docstring of the message file."""
        return self._head[1]

    @property
    def _head(self) -> tuple[str, str]:
        title, _, rest = str(self._module.__doc__).partition("\n\n")
        return title, " · ".join(rest.split("\n")).strip(" ·")


_APIS: Final = (
    Api(0, "Produce", range(3, 14), 9),
    Api(1, "Fetch", range(4, 19), 12),
    Api(2, "ListOffsets", range(1, 12), 6),
    Api(3, "Metadata", range(14), 9),
    Api(8, "OffsetCommit", range(2, 11), 8),
    Api(9, "OffsetFetch", range(1, 11), 6),
    Api(10, "FindCoordinator", range(7), 3),
    Api(11, "JoinGroup", range(10), 6),
    Api(12, "Heartbeat", range(5), 4),
    Api(13, "LeaveGroup", range(6), 4),
    Api(14, "SyncGroup", range(6), 4),
    Api(15, "DescribeGroups", range(7), 5),
    Api(16, "ListGroups", range(6), 3),
    Api(17, "SaslHandshake", range(2), NEVER),
    Api(18, "ApiVersions", range(5), 3),
    Api(19, "CreateTopics", range(2, 8), 5),
    Api(20, "DeleteTopics", range(1, 7), 4),
    Api(21, "DeleteRecords", range(3), 2),
    Api(22, "InitProducerId", range(6), 2),
    Api(23, "OffsetForLeaderEpoch", range(2, 5), 4),
    Api(24, "AddPartitionsToTxn", range(6), 3),
    Api(25, "AddOffsetsToTxn", range(5), 3),
    Api(26, "EndTxn", range(6), 3),
    Api(27, "WriteTxnMarkers", range(1, 3), 1),
    Api(28, "TxnOffsetCommit", range(6), 3),
    Api(29, "DescribeAcls", range(1, 4), 2),
    Api(30, "CreateAcls", range(1, 4), 2),
    Api(31, "DeleteAcls", range(1, 4), 2),
    Api(32, "DescribeConfigs", range(1, 5), 4),
    Api(33, "AlterConfigs", range(3), 2),
    Api(34, "AlterReplicaLogDirs", range(1, 3), 2),
    Api(35, "DescribeLogDirs", range(1, 6), 2),
    Api(36, "SaslAuthenticate", range(3), 2),
    Api(37, "CreatePartitions", range(4), 2),
    Api(38, "CreateDelegationToken", range(1, 4), 2),
    Api(39, "RenewDelegationToken", range(1, 3), 2),
    Api(40, "ExpireDelegationToken", range(1, 3), 2),
    Api(41, "DescribeDelegationToken", range(1, 4), 2),
    Api(42, "DeleteGroups", range(3), 2),
    Api(43, "ElectLeaders", range(3), 2),
    Api(44, "IncrementalAlterConfigs", range(2), 1),
    Api(45, "AlterPartitionReassignments", range(2), 0),
    Api(46, "ListPartitionReassignments", range(1), 0),
    Api(47, "OffsetDelete", range(1), NEVER),
    Api(48, "DescribeClientQuotas", range(2), 1),
    Api(49, "AlterClientQuotas", range(2), 1),
    Api(50, "DescribeUserScramCredentials", range(1), 0),
    Api(51, "AlterUserScramCredentials", range(1), 0),
    Api(55, "DescribeQuorum", range(3), 0),
    Api(57, "UpdateFeatures", range(3), 0),
    Api(60, "DescribeCluster", range(3), 0),
    Api(61, "DescribeProducers", range(1), 0),
    Api(64, "UnregisterBroker", range(1), 0),
    Api(65, "DescribeTransactions", range(1), 0),
    Api(66, "ListTransactions", range(3), 0),
    Api(68, "ConsumerGroupHeartbeat", range(2), 0),
    Api(69, "ConsumerGroupDescribe", range(2), 0),
    Api(71, "GetTelemetrySubscriptions", range(1), 0),
    Api(72, "PushTelemetry", range(1), 0),
    Api(74, "ListConfigResources", range(2), 0),
    Api(75, "DescribeTopicPartitions", range(1), 0),
)

APIS: Final[dict[int, Api]] = {api.key: api for api in _APIS}


def snake_case(name: str) -> str:
    """The module name of an API: `InitProducerId` is in init_producer_id.py."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def table() -> Iterator[str]:
    """The lines of docs/APIS.md."""
    yield from _HEAD
    for api in APIS.values():
        first, last = api.versions[0], api.versions[-1]
        versions = str(first) if first == last else f"{first}-{last}"
        flexible = "never" if api.flexible == NEVER else str(api.flexible)
        yield f"| {api.key} | {api.name} | {versions} | {flexible} | {api.notes} |"


_HEAD: Final = (
    "# The APIs on the wire",
    "",
    "The APIs that `protocol/` encodes and decodes, generated by `python -m rota.protocol.registry`; a test compares",
    "this page with the code. The broker advertises the APIs that `coordinator/api/routes.py` serves.",
    "",
    "| key | API | versions | flexible from | changes by version |",
    "|---|---|---|---|---|",
)

if __name__ == "__main__":
    print("\n".join(table()))
