"""The options of `rota consume`; tests/cli/test_produce.py runs it on brokers."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from rota.cli.consume import _fields
from rota.cli.formats import FIELDS
from rota.cli.main import run


def test_fields_are_shown_in_one_order() -> None:
    assert _fields("value,key") == ("key", "value")
    assert _fields("all") == FIELDS
    with pytest.raises(ArgumentTypeError, match="no field vlue"):
        _fields("vlue")


@pytest.mark.parametrize("arguments", [("--partition", "0"), ("--from", "5")])
def test_a_group_has_its_own_offsets(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["consume", "t", "--group", "g", *arguments]) == 2
    assert "--group takes no --partition" in capsys.readouterr().err
