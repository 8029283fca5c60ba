"""Quotas of clients in the metadata store: of a user, a client id, a user's client id, an address, or a default. Pure.

The nodes are Kafka's with ZooKeeper, but for /config/user-clients: one node for a pair of user and client id.

Laws
    CQ1 An entity and its node name each other: no two entities, a default among them, share a node. The SCRAM
        credentials of a user are in the node of its quotas.
    CQ2 A quota is greater than 0; a rate of bytes or connections is a whole number. Source: Kafka's texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote, unquote

from rota.coordinator.metadata.changes import DEFAULT_NAME, ConfigKind
from rota.coordinator.metadata.image import Image
from rota.coordinator.metadata.topic import Refusal
from rota.protocol.errors import ErrorCode

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES: Final = (CLIENT_ID, USER, IP)  # in the order of Kafka's responses
KINDS: Final = (ConfigKind.USERS, ConfigKind.CLIENTS, ConfigKind.USER_CLIENTS, ConfigKind.IPS)

PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE = "producer_byte_rate", "consumer_byte_rate"
BYTE_RATES: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)
REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE = "request_percentage", "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
CLIENT_KEYS: Final = (*BYTE_RATES, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
IP_KEYS: Final = (CONNECTION_CREATION_RATE,)
ALL_KEYS: Final = (*CLIENT_KEYS, *IP_KEYS)
SHOWN: Final = (CONSUMER_BYTE_RATE, CONTROLLER_MUTATION_RATE, REQUEST_PERCENTAGE, PRODUCER_BYTE_RATE, *IP_KEYS)  # CQ16
SHOWN_OF_FOUR: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, CONTROLLER_MUTATION_RATE, REQUEST_PERCENTAGE)
WHOLE_NUMBERS: Final = frozenset({*BYTE_RATES, *IP_KEYS})
INT_MAX, LONG_MAX = (1 << 31) - 1, (1 << 63) - 1
EPSILON: Final = 1e-6  # how far a whole number may be off, as a floating point number

Entity = tuple[tuple[str, str | None], ...]  # pairs of type and name, in the order of TYPES; None: the default
Quotas = Mapping[str, float]

_INVALID: Final = ErrorCode.INVALID_REQUEST


def entity_of(names: Mapping[str, str | None]) -> Entity:
    """Return the names by type in the order of TYPES; unknown types are last."""
    order = {**dict.fromkeys(TYPES), **names}
    return tuple((each, names[each]) for each in order if each in names)


def entity_text(entity: Entity) -> str:
    """Return an entity as Kafka's error texts show it."""
    names = ", ".join(f"{each}={'null' if name is None else name}" for each, name in entity)
    return f"ClientQuotaEntity(entries={{{names}}})"


def refuse_entity(entity: Entity) -> Refusal | None:
    """Return why an entity can have no quotas."""
    if not entity:
        return Refusal(_INVALID, "Invalid empty client quota entity")
    for each, name in entity:
        if each not in TYPES:
            return Refusal(_INVALID, f"Unhandled client quota entity type: {each}")
        if name == "":
            return Refusal(_INVALID, f"Empty {each} not supported")
    names = dict(entity)
    if IP in names and len(names) > 1:
        combined = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        return Refusal(_INVALID, combined)
    address = names.get(IP)
    if address is not None and not _is_address(address):
        return Refusal(_INVALID, f"{address} is not a valid IP or resolvable host.")
    return None


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def refuse_quota(entity: Entity, key: str, value: float) -> Refusal | None:
    """CQ2. Return why an entity can not have this quota."""
    if key not in (IP_KEYS if IP in dict(entity) else CLIENT_KEYS):
        return Refusal(_INVALID, f"Invalid configuration key {key}")
    if not value > 0:
        return Refusal(_INVALID, f"Quota {key} must be greater than 0")
    if key not in WHOLE_NUMBERS:
        return None
    largest, what = (INT_MAX, "an INT") if key in IP_KEYS else (LONG_MAX, "a LONG")
    if value > largest:
        return Refusal(_INVALID, f"Proposed value for {key} is too large for {what}.")
    if abs(round(value) - value) > EPSILON:
        return Refusal(_INVALID, f"{key} cannot be a fractional value.")
    return None


def quota_text(key: str, value: float) -> str:
    """Return a quota as it is stored. What is nearly 0 is not stored as 0, which is no quota."""
    return str(round(value)) if key in WHOLE_NUMBERS and round(value) else repr(value)


def node_of(entity: Entity) -> tuple[ConfigKind, str]:
    """CQ1. Return the kind and the name of the node of a valid entity."""
    names = dict(entity)
    if USER in names and CLIENT_ID in names:
        return ConfigKind.USER_CLIENTS, f"{_part(names[USER])}/clients/{_part(names[CLIENT_ID])}"
    ((each, name),) = entity
    kind = {USER: ConfigKind.USERS, CLIENT_ID: ConfigKind.CLIENTS, IP: ConfigKind.IPS}[each]
    is_plain = name is not None and "%" not in name and name != DEFAULT_NAME
    return kind, name if is_plain and name is not None else _part(name)


def entity_at(kind: ConfigKind, node: str) -> Entity:
    """CQ1. Return the entity of a node."""
    if kind is ConfigKind.USER_CLIENTS:
        user, _, client_id = node.partition("/clients/")
        return (CLIENT_ID, _name(client_id)), (USER, _name(user))
    each = {ConfigKind.USERS: USER, ConfigKind.CLIENTS: CLIENT_ID, ConfigKind.IPS: IP}[kind]
    return ((each, _name(node)),)


def user_node(name: str) -> str:
    """Return the name of the node of a user."""
    return node_of(((USER, name),))[1]


def user_at(node: str) -> str | None:
    """Return the user of a node; None: it is that of the default."""
    return _name(node)


def _part(name: str | None) -> str:
    return DEFAULT_NAME if name is None else quote(name, safe="", errors="surrogatepass")


def _name(part: str) -> str | None:
    return None if part == DEFAULT_NAME else unquote(part, errors="surrogatepass")


def read_quotas(configs: Mapping[str, str], keys: Iterable[str] = ALL_KEYS) -> dict[str, float]:
    """Return the quotas among the configs of a node; those that another program has garbled are left out."""
    quotas = {}
    for key in keys:
        try:
            value = float(configs.get(key, 0))
        except ValueError:
            continue
        if value > 0:
            quotas[key] = value
    return quotas


def all_quotas(image: Image) -> Iterator[tuple[Entity, Quotas]]:
    """Yield the entities that have quotas."""
    for kind in KINDS:
        for node in image.configured(kind):
            quotas = read_quotas(image.resource_configs(kind, node))
            if quotas:
                yield entity_at(kind, node), quotas
