"""The loggers of this broker as resources of IncrementalAlterConfigs (KIP-412). A restart forgets their levels."""

from __future__ import annotations

from rota.coordinator.api.config_targets import APPEND, DELETE, OPERATIONS, SET, SUBTRACT
from rota.coordinator.api.describe_configs import refuse_broker
from rota.coordinator.api.node import Node
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.observe.logger_levels import LOGGER_LEVELS, ROOT, VALID
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource


def alter_loggers(node: Node, resource: AlterConfigsResource, validate_only: bool) -> Refusal | None:
    """Set or delete the levels, all of them or, with an error, none."""
    refusal = refuse_broker(
        node, resource.resource_name, "Unexpected node id. Expected {}, but received {}", noun="Node"
    )
    if refusal is not None:
        return refusal
    refusals = [refusal for change in resource.configs if (refusal := _refuse(change)) is not None]
    if refusals:
        return refusals[0]
    for change in () if validate_only else resource.configs:
        LOGGER_LEVELS.set(change.name, change.value if change.config_operation == SET else None)
    return None


def _refuse(change: AlterableConfig) -> Refusal | None:
    name, operation = change.name, change.config_operation
    if operation not in OPERATIONS:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "")  # as Kafka
    if operation in (APPEND, SUBTRACT):
        word = "APPEND" if operation == APPEND else "SUBTRACT"
        why = f"{word} operation is not allowed for the BROKER_LOGGER resource"
        return Refusal(ErrorCode.INVALID_REQUEST, why)
    if name not in LOGGER_LEVELS.all():
        return Refusal(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == DELETE and name == ROOT:
        return Refusal(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    if operation == SET and change.value not in VALID:
        why = f"Cannot set the log level of {name} to {change.value} as it is not a supported log level. "
        return Refusal(ErrorCode.INVALID_CONFIG, f"{why}Valid log levels are {', '.join(VALID)}")
    return None
