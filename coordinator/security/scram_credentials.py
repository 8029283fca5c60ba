"""SCRAM credentials in the metadata store: /config/users/NAME, as Kafka has them with ZooKeeper.

A value is `salt=…,stored_key=…,server_key=…,iterations=4096`, the name of the config is the mechanism. The password
itself is nowhere.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import structlog

from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.client_quotas import user_at, user_node
from rota.coordinator.metadata.image import Image
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.security.sasl.scram import ScramCredential
from rota.protocol import scram
from rota.protocol.scram import ITERATIONS_MIN, MECHANISMS, Mechanism

log = structlog.get_logger("rota.security")

BOOTSTRAP: Final = "rota.scram.bootstrap.users"


def find_credential(image: Image, user: str, mechanism: Mechanism) -> ScramCredential | None:
    """Return the credential of a user; None when there is none that can be read."""
    text = image.resource_configs(ConfigKind.USERS, user_node(user)).get(mechanism.name)
    return None if text is None else read_credential(text)


def credentials_of(image: Image, user: str) -> Iterator[tuple[Mechanism, ScramCredential]]:
    """Yield the credentials of a user, by mechanism."""
    for mechanism in MECHANISMS.values():
        credential = find_credential(image, user, mechanism)
        if credential is not None:
            yield mechanism, credential


def users_with_credentials(image: Image) -> list[str]:
    """Return the names of the users that have a credential, sorted."""
    users = (user_at(node) for node in image.configured(ConfigKind.USERS))
    return sorted(user for user in users if user is not None and any(credentials_of(image, user)))


def credential_of(mechanism: Mechanism, salt: bytes, salted_password: bytes, iterations: int) -> ScramCredential:
    """Return what is stored for a salted password."""
    stored = scram.stored_key(mechanism, scram.client_key(mechanism, salted_password))
    return ScramCredential(salt, stored, scram.server_key(mechanism, salted_password), iterations)


def new_credential(mechanism: Mechanism, password: str, iterations: int = ITERATIONS_MIN) -> ScramCredential:
    """Return a credential for a password with a new salt."""
    salt = secrets.token_bytes(scram.SALT_BYTES)
    return credential_of(mechanism, salt, scram.salted_password(mechanism, password, salt, iterations), iterations)


def write_credential(credential: ScramCredential) -> str:
    """Return a credential as text."""
    keys = {
        "salt": credential.salt,
        "stored_key": credential.stored_key,
        "server_key": credential.server_key,
    }
    encoded = ",".join(f"{name}={base64.b64encode(value).decode()}" for name, value in keys.items())
    return f"{encoded},iterations={credential.iterations}"


def read_credential(text: str) -> ScramCredential | None:
    """Return the credential in a text; None for a text that another program has garbled."""
    values: Mapping[str, str] = dict(part.partition("=")[::2] for part in text.split(","))
    try:
        salt, stored, server = (base64.b64decode(values[name]) for name in ("salt", "stored_key", "server_key"))
        return ScramCredential(salt, stored, server, int(values["iterations"]))
    except (KeyError, ValueError):
        return None


def parse_bootstrap_users(text: str | None) -> dict[str, str]:
    """Return the passwords by name in rota.scram.bootstrap.users. Raises ConfigRefused, without any password."""
    users = {}
    for pair in filter(None, (each.strip() for each in (text or "").split(","))):
        name, _, password = pair.partition("=")
        if not name or not password:
            raise ConfigRefused(BOOTSTRAP, f"Invalid value for configuration {BOOTSTRAP}: expected name=password,...")
        users[name] = password
    return users


async def create_bootstrap_users(topics: Topics, text: str | None) -> None:
    """Create the users that have no credential yet, with both mechanisms. Raises StoreFailed, ConfigRefused.

    A password that was changed since then stays: the property counts once.
    """
    for name, password in parse_bootstrap_users(text).items():
        if any(credentials_of(topics, name)):
            continue
        values = {each.name: write_credential(new_credential(each, password)) for each in MECHANISMS.values()}
        await topics.configs.update(ConfigKind.USERS, user_node(name), partial(_without_change, values))
        log.info("SCRAM user created", user=name)


def _without_change(values: Mapping[str, str], before: Mapping[str, str]) -> Mapping[str, str]:
    """Another broker of the cluster may have been faster: what the store has stays, as a whole."""
    return before if values.keys() & before.keys() else {**before, **values}
