"""The options of `rota offsets`; tests/cli/test_configs.py runs it on brokers."""

from __future__ import annotations

import pytest

from rota.cli.main import run


@pytest.mark.parametrize("arguments", [(), ("t:",), ("t", "--at", "yesterday")])
def test_a_wrong_command_line_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["offsets", *arguments])
    assert ended.value.code == 2
