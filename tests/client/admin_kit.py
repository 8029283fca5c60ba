"""What the tests of the admin client share: Admin and librdkafka's AdminClient, which is to give the same answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from tests.interop.kit import PATIENCE_S

from rota.client.admin.admin import Admin
from rota.client.config import AdminConfig
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode


@pytest.fixture
async def admin(bootstrap: str) -> AsyncIterator[Admin]:
    async with Admin(AdminConfig(bootstrap_servers=bootstrap, retry_backoff_ms=10)) as admin:
        yield admin


@pytest.fixture
def theirs(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def answer(future: Any) -> Any:
    """What a future of librdkafka gives."""
    return future.result(PATIENCE_S)


def refused(future: Any) -> ErrorCode:
    """The code with which a future of librdkafka fails."""
    with pytest.raises(confluent_kafka.KafkaException) as failed:
        future.result(PATIENCE_S)
    return ErrorCode(failed.value.args[0].code())


def parts(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]
