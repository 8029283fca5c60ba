"""Every property that a listener may have of its own is one of Kafka's, or begins with rota."""

from __future__ import annotations

from pathlib import Path

from rota.coordinator.config.definition import Type
from rota.coordinator.config.security_properties import SECURITY

KAFKAS = {line.split("\t")[1] for line in Path(__file__).with_name("kafka-4.3.1.tsv").read_text().splitlines()[1:]}


def test_the_names_are_kafkas() -> None:
    assert {each.name for each in SECURITY if not each.name.startswith("rota.")} <= KAFKAS


def test_what_holds_a_password_or_a_key_is_never_shown() -> None:
    secret = {each.name for each in SECURITY if each.type is Type.PASSWORD}
    assert {each.name for each in SECURITY if each.name.endswith((".password", ".key", ".users"))} <= secret
