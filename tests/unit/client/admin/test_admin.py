"""The facade: starting and closing, and what it refuses by itself. What it does is in tests/client/test_admin_*.py."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.client.admin.conftest import Pair
from tests.unit.client.network.scripted import eventually

from rota.client.admin.admin import Admin
from rota.client.admin.configs import ConfigResource
from rota.client.admin.topics import NewTopic
from rota.client.config import AdminConfig
from rota.client.errors import ConfigError, IllegalArgument, IllegalUse, KafkaError, Unreachable
from rota.client.types import TopicPartition
from rota.protocol.messages.describe_cluster import DescribeClusterRequest


async def test_it_is_started_once_and_closed_as_often_as_you_like(pair: Pair) -> None:
    admin = Admin.from_properties({"bootstrap.servers": pair.one.address})
    with pytest.raises(IllegalUse, match="async with"):
        await admin.list_topics()
    async with admin:
        assert await admin.list_topics() == {}
        with pytest.raises(IllegalUse, match="started before"):
            await admin.start()
    await admin.close()
    with pytest.raises(IllegalUse, match="closed"):
        await admin.list_topics()
    assert await eventually(lambda: not pair.one._writers)


async def test_repr_shows_the_client_id_and_the_state(pair: Pair) -> None:
    admin = Admin(AdminConfig(bootstrap_servers=pair.one.address, client_id="me"))
    seen = [repr(admin)]
    async with admin:
        seen.append(repr(admin))
    assert [*seen, repr(admin)] == [f"<Admin client_id='me' {state}>" for state in ("new", "open", "closed")]


async def test_closing_ends_pending_requests(pair: Pair) -> None:
    pair.one.on(DescribeClusterRequest, lambda _: None)
    pair.two.on(DescribeClusterRequest, lambda _: None)
    async with Admin(AdminConfig(bootstrap_servers=pair.one.address)) as admin:
        pending = asyncio.create_task(admin.describe_cluster())
        await eventually(lambda: any(pair.requests(DescribeClusterRequest)))
    with pytest.raises(KafkaError):
        async with asyncio.timeout(5):
            await pending


async def test_an_unreachable_broker_is_named_in_the_error() -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        async with Admin(AdminConfig(bootstrap_servers="127.0.0.1:1", default_api_timeout_ms=200)):
            pass


def test_a_wrong_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"did you mean bootstrap.servers"):
        Admin.from_properties({"bootstrap.server": "127.0.0.1:1"})


@pytest.mark.parametrize(
    "given", [{}, {"remove_all": True, "members": ["m"]}, {"remove_all": True, "instances": ["i"]}]
)
async def test_remove_members_needs_either_members_or_remove_all(given: dict[str, object]) -> None:
    with pytest.raises(IllegalUse, match="not both, not neither"):
        await Admin(AdminConfig(bootstrap_servers="127.0.0.1:1")).remove_members("g", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.describe_groups(["\ud800"]),
        lambda admin: admin.delete_topics([b"x" * 16, "\ud800"]),
        lambda admin: admin.list_group_offsets({"\ud800": None}),
        lambda admin: admin.remove_members("\ud800", remove_all=True),
        lambda admin: admin.remove_members("g", remove_all=True, reason="\ud800"),
        lambda admin: admin.alter_group_offsets("\ud800", {}),
        lambda admin: admin.delete_group_offsets("\ud800", []),
        lambda admin: admin.reset_group_offsets("\ud800", to="latest"),
        lambda admin: admin.group_lag("\ud800"),
        lambda admin: admin.create_topics([NewTopic("\ud800")]),
        lambda admin: admin.create_partitions({"\ud800": 2}),
        lambda admin: admin.describe_configs([ConfigResource.topic("\ud800")]),
        lambda admin: admin.alter_configs({ConfigResource.topic("t"): {"a": "\ud800"}}),
        lambda admin: admin.alter_configs({ConfigResource.topic("t"): {"\ud800": "a"}}),
    ],
)
async def test_nc14_a_text_that_no_request_can_carry_is_refused(pair: Pair, call: Any) -> None:
    async with Admin(AdminConfig(bootstrap_servers=pair.one.address)) as admin:
        with pytest.raises(IllegalUse, match="half of a surrogate pair"):
            await call(admin)


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.describe_topics([1]),
        lambda admin: admin.describe_groups([None]),
        lambda admin: admin.delete_topics([b"short"]),
        lambda admin: admin.delete_topics([1]),
        lambda admin: admin.create_topics([NewTopic("t", configs={"retention.ms": 5})]),
        lambda admin: admin.describe_configs(["t"]),
        lambda admin: admin.remove_members("g", members=[1]),
        lambda admin: admin.reset_group_offsets("g", [1], to="latest"),
        lambda admin: admin.list_groups(states=[1]),
        lambda admin: admin.group_lag(None),
        lambda admin: admin.list_topics(timeout_ms=float("nan")),
    ],
)
async def test_nc8_an_item_of_another_type_is_refused_by_the_name_of_its_parameter(pair: Pair, call: Any) -> None:
    async with Admin(AdminConfig(bootstrap_servers=pair.one.address)) as admin:
        with pytest.raises(
            IllegalArgument, match=r"names|resources|value of retention.ms|members|what|states|group|time"
        ):
            await call(admin)


async def test_nc8_an_isolation_level_is_refused_with_those_that_there_are(pair: Pair) -> None:
    async with Admin(AdminConfig(bootstrap_servers=pair.one.address)) as admin:
        with pytest.raises(IllegalUse, match="read_uncommitted, read_committed"):
            await admin.list_offsets({TopicPartition("t", 0): -1}, isolation_level="committed")
        assert await admin.list_topics(timeout_ms=float("inf")) == {}  # type: ignore[arg-type]
