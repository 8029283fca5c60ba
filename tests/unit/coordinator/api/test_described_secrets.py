"""No API that describes a broker has a secret of its configuration."""

from __future__ import annotations

from pathlib import Path

from tests.unit.coordinator.api.data_world import World, answered

from rota.coordinator.api.describe_configs import describe_configs
from rota.coordinator.api.node import Call
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.broker_properties import USED
from rota.coordinator.config.definition import Type
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.compiler import codec
from rota.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

BROKER, BROKER_LOGGER = 4, 8
SECRET = "planted-secret"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = f'{MODULE} required username="u" password="{SECRET}" user_u="{SECRET}";'


def test_no_description_of_a_broker_has_a_secret(tmp_path: Path) -> None:
    passwords = {name: SECRET for name, each in USED.items() if each.type is Type.PASSWORD}
    passwords["rota.scram.bootstrap.users"] = f"u={SECRET}"
    of_listeners = {
        "listener.name.plaintext.ssl.keystore.password": SECRET,
        "listener.name.plaintext.plain.sasl.jaas.config": JAAS,
    }
    world = World({**passwords, **of_listeners})
    config = world.node.config
    assert SECRET not in repr(config) + str(config.security) + str(config.warnings)
    for version in (1, 4):
        request = DescribeConfigsRequest(
            resources=(
                DescribeConfigsResource(
                    resource_type=BROKER, resource_name=str(config.node_id), configuration_keys=None
                ),
            ),
            include_synonyms=True,
            include_documentation=True,
        )
        reply = describe_configs(world.node, Call(version, "c", "/h", "h", 1), request)
        response = answered(reply) if isinstance(reply, DelayedReply) else reply
        (result,) = response.results
        shown = {each.name: each for each in result.configs}
        assert passwords.keys() & shown.keys()
        assert all(shown[name].is_sensitive and shown[name].value is None for name in passwords.keys() & shown.keys())
        assert SECRET.encode() not in codec(DescribeConfigsResponse, version).encode(response)
    assert isinstance(config, BrokerConfig)
