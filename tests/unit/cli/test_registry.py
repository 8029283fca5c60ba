"""The table of commands."""

from __future__ import annotations

from importlib.util import find_spec

from rota.cli.registry import COMMANDS, SECTIONS


def test_each_command_name_is_unique() -> None:
    assert len(COMMANDS) == sum(map(len, SECTIONS.values()))


def test_the_module_of_each_command_exists() -> None:
    assert [command.name for command in COMMANDS.values() if find_spec(command.module) is None] == []


def test_summaries_are_short_and_uniform() -> None:
    for command in COMMANDS.values():
        assert command.summary[0].islower()
        assert not command.summary.endswith(".")
        assert len(command.summary) <= 70
