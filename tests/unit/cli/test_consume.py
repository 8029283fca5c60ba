"""The options of `rota consume`; tests/cli/test_produce.py runs it on brokers."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

import pytest

from rota.cli.consume import _consumer_settings, _fields
from rota.cli.formats import FIELDS
from rota.cli.main import run


def test_fields_are_shown_in_one_order() -> None:
    assert _fields("value,key") == ("key", "value")
    assert _fields("all") == FIELDS
    with pytest.raises(ArgumentTypeError, match="no field vlue"):
        _fields("vlue")


def test_without_a_group_records_that_were_deleted_meanwhile_do_not_end_it() -> None:
    """The oldest record that is left comes next, not the end of the log."""
    options = Namespace(group=None, read_committed=False, start=None)
    given = {"group.id": "g", "auto.offset.reset": "latest", "client.id": "c"}
    made = _consumer_settings(given, options)
    assert (made.get("group.id"), made["auto.offset.reset"], made["client.id"]) == (None, "earliest", "c")


@pytest.mark.parametrize("arguments", [("--partition", "0"), ("--from", "5")])
def test_a_group_has_its_own_offsets(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["consume", "t", "--group", "g", *arguments]) == 2
    assert "--group takes no --partition" in capsys.readouterr().err
