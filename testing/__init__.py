"""Brokers for the tests of applications, with faults on request; docs/TESTING.md is the guide.

    from rota.testing import running_broker

    with running_broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

The names are loaded at their first use: pytest loads the plugin in every run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.testing.brokers import RunningBroker, RunningCluster, running_broker, running_cluster
    from rota.testing.errors import CommandRefused, NotInTime
    from rota.testing.faults import Fault, Faults
    from rota.testing.groups import GroupUnderTest
    from rota.testing.records import no_duplicates, no_gaps

__all__ = [
    "CommandRefused",
    "Fault",
    "Faults",
    "GroupUnderTest",
    "NotInTime",
    "RunningBroker",
    "RunningCluster",
    "no_duplicates",
    "no_gaps",
    "running_broker",
    "running_cluster",
]

_MODULES = {
    "CommandRefused": "errors",
    "Fault": "faults",
    "Faults": "faults",
    "GroupUnderTest": "groups",
    "NotInTime": "errors",
    "RunningBroker": "brokers",
    "RunningCluster": "brokers",
    "no_duplicates": "records",
    "no_gaps": "records",
    "running_broker": "brokers",
    "running_cluster": "brokers",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"rota.testing.{_MODULES[name]}"), name)
