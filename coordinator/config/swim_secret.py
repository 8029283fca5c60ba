"""The secret of the failure detector, from a property or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused

FILE: Final = "rota.swim.secret.file"
FILE_BYTES_MAX: Final = 64 * 1024


def swim_secret(config: BrokerConfig) -> bytes:
    """Return the secret, without the white space around it in a file; empty if none is set. Raises ConfigRefused."""
    path = config.rota_swim_secret_file
    if not path:
        return config.rota_swim_secret.encode()
    if config.rota_swim_secret:
        raise ConfigRefused(FILE, f"Configurations {FILE} and rota.swim.secret exclude each other")
    try:
        with Path(path).open("rb") as file:
            secret = file.read(FILE_BYTES_MAX + 1).strip()
    except OSError as error:
        raise ConfigRefused(FILE, f"Configuration {FILE}: {path} cannot be read: {error.strerror}") from None
    if not secret or len(secret) > FILE_BYTES_MAX:
        raise ConfigRefused(FILE, f"Configuration {FILE}: {path} is empty or longer than {FILE_BYTES_MAX} bytes")
    return secret
