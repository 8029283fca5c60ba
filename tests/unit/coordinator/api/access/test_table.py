"""Every API against a principal without permissions, with all, and with those of the table: made for each API."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from tests.unit.coordinator.api.access import access_world
from tests.unit.coordinator.api.access.access_world import ALICE, AccessWorld, call

from rota.coordinator.api.access.table import ACCESS, Need, guarded
from rota.coordinator.api.routes import SERVES, routes
from rota.coordinator.security.acl import Entry, PatternType, Permission, ResourcePattern
from rota.coordinator.security.authorizer import Action, Authorizer, Decision
from rota.coordinator.security.operations import Operation, ResourceType
from rota.protocol.errors import ErrorCode
from rota.protocol.registry import APIS

CHECKED = [key for key in SERVES if ACCESS[key].needs]
DENIALS = {code for code in ErrorCode if code.name.endswith("AUTHORIZATION_FAILED")}


def requests(key: int) -> Iterator[tuple[int, Any]]:
    """(version, request) of one API."""
    for version in APIS[key].versions:
        for request in getattr(access_world, SERVES[key])(version):
            yield version, request


def of_ends(key: int) -> Iterator[tuple[int, Any]]:
    """Those of the first and the last version; the check is the same in all, and each takes a broker's start."""
    ends = {APIS[key].versions[0], APIS[key].versions[-1]}
    return (each for each in requests(key) if each[0] in ends)


def test_every_api_has_a_rule() -> None:
    assert set(SERVES) <= set(ACCESS)
    assert [SERVES[key] for key in SERVES if not ACCESS[key].needs] == [
        name for name in SERVES.values() if name in OPEN
    ]


OPEN = {
    *("sasl_handshake", "api_versions", "sasl_authenticate", "get_telemetry_subscriptions", "push_telemetry"),
    *(f"{what}_delegation_token" for what in ("renew", "expire", "describe")),
}


@pytest.mark.parametrize("key", CHECKED, ids=lambda key: SERVES[key])
def test_without_permission_an_api_shows_nothing_and_changes_nothing(key: int) -> None:
    """The response is the same from a broker that has what the request names and from one that does not."""
    full, empty = AccessWorld(Authorizer()), AccessWorld(Authorizer(), secrets=False)
    before = full.state()
    for version, request in requests(key):
        response = full.send(key, request, version)
        assert response == empty.send(key, request, version)
        assert full.state() == before
        assert key in SHOWS_NOTHING or codes(response) & (DENIALS | OF_THE_REQUEST)


SHOWS_NOTHING = {3, 16, 60, 66, 75}  # lists without what may not be seen
OF_THE_REQUEST = {
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
}  # errors before those of access


@pytest.mark.parametrize("key", CHECKED, ids=lambda key: SERVES[key])
def test_a_super_user_is_denied_nothing_and_each_version_asks_for_the_same(key: int) -> None:
    found, recorder = defaultdict[int, list[set[Need]]](list), Recorder((), {str(ALICE)})
    world = AccessWorld(recorder)
    for version, request in requests(key):
        recorder.requests = set()
        checked = codes(world.send(key, request, version))
        found[version].append(recorder.requests)
        is_denied_by_api = key == 10 and request.key_type == 2  # share groups
        assert is_denied_by_api or not checked & DENIALS or checked == unchecked_codes(key, request, version)
    assert {after for before, after in pairwise(found) if found[before] != found[after]} == OTHERWISE_SINCE.get(
        key, set()
    )


# the versions of an API whose requests ask for more or less than those of the one before: where topics have ids, which
# are unknown here, where there are more kinds of requests or names, or a request may ask for the authorized operations;
# the first version of CreateTopics creates the topic
OTHERWISE_SINCE = {
    0: {13},
    1: {15},
    3: {8, 11},
    8: {10},
    9: {2, 10},
    10: {1, 6},
    19: {3},
    20: {6},
    24: {4},
    38: {3},
}


def unchecked_codes(key: int, request: Any, version: int) -> set[int]:
    return codes(AccessWorld(Authorizer()).send_as_broker(key, request, version))


@pytest.mark.parametrize("key", CHECKED, ids=lambda key: SERVES[key])
def test_each_api_checks_the_operations_of_the_table(key: int) -> None:
    """All that it asks for, whether that is granted or not, is in the table, and all of the table is asked for."""
    found, needs = set[Need](), ACCESS[key].needs
    some = list(requests(key) if key in CHANGES_NOTHING else of_ends(key))
    for grants in ((), needs, *((need,) for need in needs)):
        world = None
        for version, request in some:
            if world is None or key not in CHANGES_NOTHING:
                recorder = Recorder(grants)
                world = AccessWorld(recorder)
            world.send(key, request, version)
            found |= recorder.requests
    assert found == set(needs)


CHANGES_NOTHING = {3, 15, 60, 69, 75}


class Recorder(Authorizer):
    """Grants what it is given, and keeps what it was asked for."""

    def __init__(self, grants: Iterable[Need], super_users: Iterable[str] = ()) -> None:
        super().__init__(super_users)
        self.requests: set[Need] = set()
        for operation, kind in grants:
            entry = Entry(Permission.ALLOW, operation, str(ALICE), "*")
            self.replace(ResourcePattern(kind, PatternType.LITERAL, "*"), [*self._entries(kind), entry])

    def _entries(self, kind: ResourceType) -> list[Entry]:
        return [acl.entry for acl in self.acls if acl.pattern.resource_type is kind]

    def decide(
        self, principal: Any, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Decision:
        self.requests.add((operation, resource_type))
        return self._decide(Action(principal, host, operation, resource_type, name))

    def operations(self, principal: Any, host: str, resource_type: ResourceType, name: str) -> int:
        """Of every operation, to answer which are authorized: that is no check."""
        before = set(self.requests)
        authorized = super().operations(principal, host, resource_type, name)
        self.requests = before
        return authorized


def codes(message: Any) -> set[int]:
    """Every error code in a message."""
    found: set[int] = set()
    for name in getattr(message, "__dataclass_fields__", ()):
        value = getattr(message, name)
        if name.endswith("error_code"):
            found.add(value)
        for item in value if isinstance(value, tuple) else (value,):
            found |= codes(item)
    return found


def test_without_an_authorizer_apis_are_called_directly() -> None:
    from rota.coordinator.api.heartbeat import heartbeat

    assert routes()[12].serve is heartbeat
    assert guarded(18, "api_versions", heartbeat) is heartbeat
    world = AccessWorld(Authorizer())
    world.node.authorizer = None
    request = next(access_world.heartbeat(4))
    assert world.send(12, request, 4) == heartbeat(world.node, call(4), request)
