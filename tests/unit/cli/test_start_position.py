"""The positions of --from."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from rota.cli.start_position import StartPosition, start_position


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", StartPosition("earliest")),
        ("latest", StartPosition("latest")),
        ("0", StartPosition("offset", 0)),
        ("-3", StartPosition("before_end", 3)),
        ("@1000", StartPosition("time", 1000)),
        ("@1970-01-01T00:00:01Z", StartPosition("time", 1000)),
    ],
)
def test_positions(text: str, position: StartPosition) -> None:
    assert start_position(text) == position


@pytest.mark.parametrize("text", ["", "begin", "1.5", "@", "@x", "9223372036854775808", "-9223372036854775808"])
def test_an_invalid_position_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        start_position(text)
