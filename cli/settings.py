"""The client's settings for a command: from a file, from the environment, from options.

In ascending order of precedence: the command's defaults, the file of --command-config (or ROTA_COMMAND_CONFIG), the
variables ROTA_BOOTSTRAP_SERVER and ROTA_CLIENT_…, --bootstrap-server and --command-property.

Laws
    One file serves all commands: a setting of another client (the consumer's, for a command that uses the admin
    client) is left out, a setting that no client has is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Final, TypeVar

from rota.cli.secret_names import is_secret
from rota.transport.properties_file import FileRefused, load_properties

if TYPE_CHECKING:
    from rota.client.config import ClientConfig

    C = TypeVar("C", bound=ClientConfig)

DEFAULT_ADDRESS: Final = "127.0.0.1:9092"
CLIENT_ID: Final = "rota-cli"
CONFIG_VARIABLE: Final = "ROTA_COMMAND_CONFIG"
BOOTSTRAP_VARIABLE: Final = "ROTA_BOOTSTRAP_SERVER"
SETTING_VARIABLES: Final = "ROTA_CLIENT_"  # ROTA_CLIENT_REQUEST_TIMEOUT_MS is request.timeout.ms


class UsageError(Exception):
    """An invalid option, file or combination of options; the message says what to write instead."""


def read_settings(
    variables: Mapping[str, str],
    *,
    bootstrap: str | None,
    file: str | None,
    properties: Iterable[str] = (),
    timeout_s: float,
) -> dict[str, str]:
    """Return settings by Kafka's dotted names. Raises UsageError."""
    found = {
        "bootstrap.servers": DEFAULT_ADDRESS,
        "client.id": CLIENT_ID,
        "default.api.timeout.ms": str(int(timeout_s * 1000)),
    }
    found |= _from_file(file or variables.get(CONFIG_VARIABLE) or None)
    found |= _from_variables(variables)
    if bootstrap is not None:
        found["bootstrap.servers"] = bootstrap
    return found | dict(map(pair, properties))


def config_of(kind: type[C], settings: Mapping[str, str]) -> C:
    """Return the configuration of one client, without the settings of other clients. Raises ConfigError."""
    from rota.client.config import ConsumerConfig, ProducerConfig

    own = _names(kind)
    others = (_names(ConsumerConfig) | _names(ProducerConfig)) - own
    return kind.from_properties({name: value for name, value in settings.items() if name not in others})


def pair(text: str) -> tuple[str, str]:
    """Split NAME=VALUE. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        shown = "…" if is_secret(text) else repr(text)
        raise UsageError(f"{shown}: expected NAME=VALUE")
    return name.strip(), value.strip()


def _names(kind: type[ClientConfig]) -> set[str]:
    return {field.name.replace("_", ".") for field in fields(kind)}


def _from_file(file: str | None) -> dict[str, str]:
    if file is None:
        return {}
    try:
        return load_properties(file)
    except OSError as failure:
        raise UsageError(f"cannot read {file}: {failure.strerror}") from failure
    except FileRefused as failure:
        raise UsageError(str(failure)) from failure


def _from_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Raises UsageError for a variable that names no setting."""
    given = {name: value for name, value in variables.items() if name.startswith(SETTING_VARIABLES)}
    found = {_setting(name): value for name, value in given.items()}
    if variables.get(BOOTSTRAP_VARIABLE):
        found["bootstrap.servers"] = variables[BOOTSTRAP_VARIABLE]
    return found


def _setting(variable: str) -> str:
    from rota.client.config import AdminConfig, ConsumerConfig, ProducerConfig

    name = variable.removeprefix(SETTING_VARIABLES).lower().replace("_", ".")
    if not any(name in _names(kind) for kind in (AdminConfig, ConsumerConfig, ProducerConfig)):
        raise UsageError(
            f"the environment variable {variable} sets {name or 'nothing'}, which is no setting of a client: "
            f"unset it, or name one of docs/CLIENT_SETTINGS.md, as {SETTING_VARIABLES}REQUEST_TIMEOUT_MS does"
        )
    return name
