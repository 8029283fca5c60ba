"""IncrementalAlterConfigs of this broker's loggers: all levels of a request, or none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.broker_loggers import APPEND, DELETE, SET, alter_loggers
from rota.coordinator.observe.logger_levels import LOGGER_LEVELS
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    LOGGER_LEVELS.reset(20)
    yield
    LOGGER_LEVELS.reset(20)


def alter(*changes: tuple[str, int, str | None], name: str = "0", validate_only: bool = False) -> int:
    configs = tuple(AlterableConfig(name=key, config_operation=what, value=value) for key, what, value in changes)
    resource = AlterConfigsResource(resource_type=8, resource_name=name, configs=configs)
    refusal = alter_loggers(World().node, resource, validate_only)
    return 0 if refusal is None else refusal.code


def test_levels_are_set_and_deleted() -> None:
    assert alter(("rota.server", SET, "DEBUG"), ("root", SET, "WARN")) == 0
    assert (LOGGER_LEVELS.all()["rota.server"], LOGGER_LEVELS.all()["rota.broker"]) == ("DEBUG", "WARN")
    assert alter(("rota.server", DELETE, None)) == 0
    assert LOGGER_LEVELS.all()["rota.server"] == "WARN"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("nobody", SET, "DEBUG"), ErrorCode.INVALID_CONFIG),
        (("rota.broker", SET, "debug"), ErrorCode.INVALID_CONFIG),
        (("rota.broker", APPEND, "DEBUG"), ErrorCode.INVALID_REQUEST),
        (("rota.broker", 9, "DEBUG"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (("root", DELETE, None), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_refused_request_changes_nothing(change: tuple[str, int, str | None], code: ErrorCode) -> None:
    before = LOGGER_LEVELS.all()
    assert alter(("rota.server", SET, "DEBUG"), change) == code
    assert LOGGER_LEVELS.all() == before


def test_validation_alone_and_another_broker_change_nothing() -> None:
    before = LOGGER_LEVELS.all()
    assert alter(("rota.server", SET, "DEBUG"), validate_only=True) == 0
    assert alter(("rota.server", SET, "DEBUG"), name="1") == ErrorCode.INVALID_REQUEST
    assert LOGGER_LEVELS.all() == before
