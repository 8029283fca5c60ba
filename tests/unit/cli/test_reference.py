"""The commands as data."""

from __future__ import annotations

import pytest

from rota.cli.reference import SHARED, references
from rota.cli.registry import COMMANDS, SECTIONS

CLUSTER = [command.name for command in SECTIONS["Any Kafka cluster"]]


def test_a_command_with_subcommands_is_all_of_them() -> None:
    found = {each.words: each for each in references("topics")}
    assert {words[1] for words in found} >= {"list", "describe", "create", "add-partitions", "delete"}
    create = found["topics", "create"]
    assert [each.value for each in create.positionals] == ["TOPIC [TOPIC …]"]
    assert {each.flags[0]: each.value for each in create.options}["--config"] == "NAME=VALUE"


@pytest.mark.parametrize("name", CLUSTER)
def test_every_command_of_a_cluster_has_the_shared_options(name: str) -> None:
    for each in references(name):
        assert {option.flags[0] for option in each.options} >= set(SHARED), each.words


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_option_is_explained(name: str) -> None:
    for each in references(name):
        assert each.description.endswith(".") or "(" in each.description, each.words
        unexplained = [option.flags for option in each.options if not option.help and not option.choices]
        assert unexplained == [], each.words
