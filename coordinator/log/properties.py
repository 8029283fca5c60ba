"""The texts of `meta.properties` (Java's `.properties` form) and `partition.metadata`, and the ids in them."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import Final

TOPIC_ID_BYTES: Final = 16
ID_BYTES: Final = 16


def write_properties(properties: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def read_properties(text: str) -> dict[str, str]:
    """Lines that are empty, comments, or without "=" are passed over."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and line.lstrip()[:1] not in "#!")
    return {name.strip(): value.strip() for name, value in pairs}


def new_id() -> str:
    """A random id as Kafka writes them: 16 bytes, base64 for URLs, without padding."""
    while True:
        text = base64.urlsafe_b64encode(os.urandom(ID_BYTES)).decode().rstrip("=")
        if not text.startswith("-"):  # a command line would take it for an option
            return text


def write_topic_id(topic_id: bytes) -> bytes:
    """`partition.metadata` in Kafka's form."""
    return b"version: 0\ntopic_id: " + base64.urlsafe_b64encode(topic_id).rstrip(b"=")


def read_topic_id(data: bytes) -> bytes | None:
    """Return the topic id; None if the file is damaged, so that the log is not taken for another topic's."""
    _, found, text = data.partition(b"topic_id: ")
    try:
        topic_id = base64.urlsafe_b64decode(text.strip() + b"==")
    except ValueError:
        return None
    return topic_id if found and len(topic_id) == TOPIC_ID_BYTES else None
