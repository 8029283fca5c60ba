"""Whether a broker is ready, and whether its console is read-only."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.web.conftest import World

from rota.coordinator.metadata.image import NOT_REGISTERED
from rota.coordinator.security.authorizer import Authorizer
from rota.coordinator.web.site import is_loopback, not_ready


def test_a_started_broker_is_ready(world: World) -> None:
    assert list(not_ready(world.broker.http.site)) == []


def test_the_reasons_are_named(world: World) -> None:
    site = world.broker.http.site
    site.is_started = False
    assert list(not_ready(site)) == ["starting: the broker has not joined its cluster yet"]
    site.is_started, site.is_stopping = True, True
    assert list(not_ready(site)) == ["stopping"]
    site.is_stopping = False
    site.node.topics.broker_epoch = NOT_REGISTERED
    assert list(not_ready(site)) == ["not registered in the cluster"]
    site.node.topics.broker_epoch = -1
    site.connections.suspend()
    assert "registration is not confirmed" in next(not_ready(site))
    site.connections.resume()
    assert list(not_ready(site)) == []


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.9.9.9", True), ("", False), ("0.0.0.0", False)],
)
def test_loopback_is_reached_from_this_machine_only(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


async def test_with_an_authorizer_the_console_neither_acts_nor_shows_records(world: World) -> None:
    site = world.broker.http.site
    assert not site.has_hidden_records
    site.node.authorizer = Authorizer()
    assert site.is_read_only
    assert "checks no ACLs" in (await world.read("/api/records?topic=t", 403))["error"]
    site.node.config = site.node.config.changed({"rota.http.read.only": "false"})
    assert not site.is_read_only
    assert not site.has_hidden_records


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, False),
        ({"rota.http.listener": "0.0.0.0:0"}, True),
        ({"rota.http.listener": "0.0.0.0:0", "rota.http.read.only": "false"}, False),
        ({"rota.http.read.only": "true"}, True),
    ],
)
def test_a_console_that_others_reach_is_read_only_unless_it_is_configured(
    world: World, properties: dict[str, str], expected: bool
) -> None:
    site = world.broker.http.site
    site.node.config = site.node.config.changed(properties)
    assert site.is_read_only is expected
