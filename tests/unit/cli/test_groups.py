"""`rota groups`: the parts that need no broker; tests/cli/test_groups.py runs it on brokers."""

from __future__ import annotations

import pytest

from rota.cli.main import parser_of, run


@pytest.mark.parametrize("arguments", [(), ("lst",), ("describe",), ("delete",), ("reset", "g")])
def test_a_wrong_command_line_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["groups", *arguments])
    assert ended.value.code == 2


@pytest.mark.parametrize("arguments", [("--state", "Stabel"), ("--type", "clasic")])
def test_a_state_or_type_that_groups_do_not_have_is_refused(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Law CL3: it would list no groups, as if there were none."""
    with pytest.raises(SystemExit) as ended:
        run(["groups", "list", *arguments])
    assert ended.value.code == 2
    assert f"'{arguments[1]}' is none of" in capsys.readouterr().err


def test_states_and_types_are_named_in_any_case() -> None:
    options = parser_of("groups").parse_args(["list", "--state", "stable", "--type", "Consumer"])
    assert (options.state, options.type) == (["Stable"], ["consumer"])


@pytest.mark.parametrize("arguments", [(), ("--all", "--member", "m")])
def test_members_to_remove_are_named_or_all(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["groups", "remove-members", "g", *arguments]) == 2
    assert "--member" in capsys.readouterr().err
