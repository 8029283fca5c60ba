"""The ACLs in the metadata store: one node for each resource pattern, written here, read into the authorizer.

Laws
    AN1 A created ACL is in the store before its creator gets the response. It is in force on this broker at once, and
        on every other broker as soon as its watch fires. The same is true of its deletion.
    AN2 A stored text that this release cannot read is reported in a warning; the other ACLs stay in force. Unless it
        is an ALLOW, it denies every operation to the principals that it may name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.metadata.changes import Change, ConfigKind, ResourceConfigChanged
from rota.coordinator.metadata.image import Image
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.security.acl import WILDCARD, Entry, Permission, ResourcePattern
from rota.coordinator.security.authorizer import WILDCARD_PRINCIPAL, Authorizer
from rota.coordinator.security.operations import Operation

NO_VALUE: Final = ""
DENY_ALL: Final = Entry(Permission.DENY, Operation.ALL, WILDCARD_PRINCIPAL, WILDCARD)

log = structlog.get_logger("rota.security")


def open_authorizer(config: BrokerConfig, image: Image) -> Authorizer | None:
    """Return what decides with the ACLs of the image; None when access control is off (authorizer.class.name)."""
    if not config.authorizer_class_name:
        return None
    authorizer = Authorizer(config.super_user_names, allow_if_no_acl=config.allow_everyone_if_no_acl_found)
    follow(authorizer, image)
    return authorizer


def follow(authorizer: Authorizer, image: Image) -> None:
    """Keep the authorizer's ACLs those of the image from now on."""
    for name in image.configured(ConfigKind.ACLS):
        _take_over(authorizer, image, name)

    def changed(change: Change) -> None:
        if isinstance(change, ResourceConfigChanged) and change.kind is ConfigKind.ACLS:
            _take_over(authorizer, image, change.name)

    image.on_change(changed)


async def add(topics: Topics, pattern: ResourcePattern, entries: Collection[Entry]) -> Refusal | None:
    """AN1. Add entries to a pattern; those that it has stay. Raises StoreFailed."""
    return await topics.configs.update(ConfigKind.ACLS, str(pattern), partial(_with, entries))


async def remove(topics: Topics, pattern: ResourcePattern, entries: Collection[Entry]) -> Refusal | None:
    """AN1. Remove entries of a pattern. Raises StoreFailed."""
    return await topics.configs.update(ConfigKind.ACLS, str(pattern), partial(_without, entries))


# ---- inside


def _with(entries: Collection[Entry], before: Mapping[str, str]) -> Mapping[str, str]:
    return {**before, **{str(entry): NO_VALUE for entry in entries}}


def _without(entries: Collection[Entry], before: Mapping[str, str]) -> Mapping[str, str]:
    return {text: value for text, value in before.items() if _read(text) not in entries}


def _take_over(authorizer: Authorizer, image: Image, name: str) -> None:
    try:
        pattern = ResourcePattern.parse(name)
    except ValueError as error:
        log.warning("ACLs cannot be read and are ignored", node=name, reason=str(error))
        return
    authorizer.replace(pattern, _entries(image.resource_configs(ConfigKind.ACLS, name)))


def _entries(texts: Collection[str]) -> Iterator[Entry]:
    for text in texts:
        entry = _read(text)
        if entry is None or str(entry) != text:
            log.warning("An ACL cannot be read", acl=text, counts_as=None if entry is None else str(entry))
        if entry is not None:
            yield entry


def _read(text: str) -> Entry | None:
    """AN2. Return the entry of a text, or what stands for one that cannot be read; None for such an ALLOW."""
    permission, _, rest = text.partition(" ")
    for each in (text, f"{permission} {Operation.ALL.name} {rest.partition(' ')[2]}"):
        with suppress(ValueError):
            entry = Entry.parse(each)
            return entry if each is text or entry.permission is not Permission.ALLOW else None
    return None if permission == Permission.ALLOW.name else DENY_ALL
