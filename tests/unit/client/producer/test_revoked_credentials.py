"""Credentials that are revoked while a producer or a consumer runs: its calls say so at once, without a storm."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.client.producer.leader import Leader, settings

from rota.client import Consumer, ConsumerConfig, Producer, TopicPartition
from rota.client.errors import AuthenticationFailed, DeliveryFailed
from rota.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from rota.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

SASL: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": "u", "sasl_password": "planted",
}  # fmt: skip
LONG_MS = 600_000  # a retry until a timeout would not end within the test


def accept(leader: Leader) -> None:
    leader.on(SaslHandshakeRequest, lambda _: SaslHandshakeResponse())
    leader.on(SaslAuthenticateRequest, lambda _: SaslAuthenticateResponse())


def revoke(leader: Leader) -> None:
    leader.on(SaslAuthenticateRequest, lambda _: SaslAuthenticateResponse(error_code=58, error_message="revoked"))
    leader.drop()


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_producer(idempotent: bool) -> None:
    async with Leader(partitions=1) as leader:
        accept(leader)
        config = settings(leader, **SASL, delivery_timeout_ms=LONG_MS, enable_idempotence=idempotent)
        async with Producer(config) as producer:
            await producer.send_and_wait("t", b"1")
            revoke(leader)
            with pytest.raises(DeliveryFailed, match="revoked") as failed:
                async with asyncio.timeout(10):
                    await producer.send_and_wait("t", b"2")
            assert isinstance(failed.value.cause, AuthenticationFailed)
            accept(leader)
            await producer.send_and_wait("t", b"3")
        assert [record.value for record in leader.logs[0]] == [b"1", b"3"]


async def test_a_consumer() -> None:
    async with Leader(partitions=1) as leader:
        accept(leader)
        config = ConsumerConfig(bootstrap_servers=leader.address, default_api_timeout_ms=LONG_MS, **SASL)
        async with Consumer(config) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            revoke(leader)
            with pytest.raises(AuthenticationFailed, match="revoked"):
                async with asyncio.timeout(10):
                    await consumer.getmany(timeout_ms=LONG_MS)
