"""`rota groups`: the parts that need no broker; tests/cli/test_groups.py runs it on brokers."""

from __future__ import annotations

import pytest

from rota.cli.main import run


@pytest.mark.parametrize("arguments", [(), ("lst",), ("describe",), ("delete",), ("reset", "g")])
def test_a_wrong_command_line_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["groups", *arguments])
    assert ended.value.code == 2


@pytest.mark.parametrize("arguments", [(), ("--all", "--member", "m")])
def test_members_to_remove_are_named_or_all(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["groups", "remove-members", "g", *arguments]) == 2
    assert "--member" in capsys.readouterr().err
