"""The SCRAM users of a broker as a listener and the console look them up: an unknown user has a made-up credential.

Law
    SA3 The salt and the iterations of an unknown user look like those of the users that exist, and depend on its name
        and on a secret of the cluster alone: each broker makes up the same ones, also after a restart.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final, NamedTuple

from rota.coordinator.metadata.changes import DEFAULT_NAME, Change, ConfigKind, ResourceConfigChanged
from rota.coordinator.metadata.image import Image
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.security.sasl.scram import ScramCredential
from rota.coordinator.security.scram_credentials import credentials_of, find_credential, users_with_credentials
from rota.protocol.scram import ITERATIONS_MIN, MECHANISMS, SALT_BYTES, Mechanism

SECRET_CONFIG: Final = "rota.scram.unknown.users.secret"  # a config of the default user in the metadata store
SECRET_BYTES: Final = 32
_BASE_36: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"  # the salts of kafka-configs are numbers in this notation


class Shape(NamedTuple):
    """What a client sees of a credential beside its random bits."""

    iterations: int = ITERATIONS_MIN
    salt_bytes: int = SALT_BYTES
    is_base_36: bool = False


async def create_secret(topics: Topics) -> None:
    """Create the secret of the cluster unless it exists. Raises StoreFailed."""
    if SECRET_CONFIG not in topics.resource_configs(ConfigKind.USERS, DEFAULT_NAME):
        fresh = {SECRET_CONFIG: secrets.token_hex(SECRET_BYTES)}
        await topics.configs.update(ConfigKind.USERS, DEFAULT_NAME, lambda before: {**fresh, **before})


class ScramUsers:
    """Looks up credentials in an image. The shapes are computed at the first unknown user after a change of users."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._own_secret = secrets.token_hex(SECRET_BYTES)  # until the cluster has one
        self._shapes: dict[Mechanism, list[Shape]] | None = None
        image.on_change(self._changed)

    def find(self, user: str, mechanism: Mechanism) -> ScramCredential:
        """Return the credential of a user, or a made-up one, which no password is for."""
        return find_credential(self._image, user, mechanism) or self._made_up(user, mechanism)

    def strongest(self, user: str) -> tuple[Mechanism, ScramCredential]:
        """Return the credential of a user with the most secure mechanism, or a made-up one."""
        known = max(credentials_of(self._image, user), key=lambda each: each[0].type, default=None)
        if known is not None:
            return known
        used = [mechanism for mechanism, shapes in self._all_shapes().items() if shapes]
        mechanism = max(used or MECHANISMS.values(), key=lambda each: each.type)
        return mechanism, self._made_up(user, mechanism)

    def _made_up(self, user: str, mechanism: Mechanism) -> ScramCredential:
        name = f"{mechanism.name} {user}"
        shapes = self._all_shapes()[mechanism] or [Shape()]
        shape = max(
            shapes, key=lambda each: self._digest(f"shape {each} {name}")
        )  # few names get another with a change
        salt = b"".join(self._digest(f"salt {part} {name}") for part in range(shape.salt_bytes // 64 + 1))
        if shape.is_base_36:
            salt = bytes(_BASE_36[byte % len(_BASE_36)] for byte in salt)
        keys = bytes(mechanism.key_bytes)
        return ScramCredential(salt[: shape.salt_bytes], keys, keys, shape.iterations, is_made_up=True)

    def _digest(self, text: str) -> bytes:
        secret = self._image.resource_configs(ConfigKind.USERS, DEFAULT_NAME).get(SECRET_CONFIG) or self._own_secret
        return hmac.digest(secret.encode(), text.encode(errors="surrogatepass"), "sha512")

    def _all_shapes(self) -> dict[Mechanism, list[Shape]]:
        if self._shapes is None:
            found: dict[Mechanism, set[Shape]] = {mechanism: set() for mechanism in MECHANISMS.values()}
            for user in users_with_credentials(self._image):
                for mechanism, credential in credentials_of(self._image, user):
                    found[mechanism].add(_shape_of(credential))
            self._shapes = {mechanism: sorted(shapes) for mechanism, shapes in found.items()}
        return self._shapes

    def _changed(self, change: Change) -> None:
        if isinstance(change, ResourceConfigChanged) and change.kind is ConfigKind.USERS:
            self._shapes = None


def _shape_of(credential: ScramCredential) -> Shape:
    salt = credential.salt
    return Shape(credential.iterations, len(salt), not salt.strip(_BASE_36))
