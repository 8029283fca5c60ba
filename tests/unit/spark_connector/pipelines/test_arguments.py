"""The common arguments, and where the settings of the client come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.arguments import common_parser, interval, parse_common

LEAST = ["--bootstrap-servers", "a:1", "--output", "/out"]


def test_settings_come_from_the_file_and_options_take_precedence(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=other:1\nsasl.password=planted\nsecurity.protocol=SSL\n")
    more = ["--command-config", str(file), "--option", "kafka.security.protocol=SASL_SSL", "--option", "x=a=b"]
    given = parse_common(common_parser("job", "", ""), [*LEAST, *more])
    assert given["bootstrap_servers"] == "a:1"
    assert given["options"] == {"kafka.sasl.password": "planted", "kafka.security.protocol": "SASL_SSL", "x": "a=b"}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--option", "x"], "must be NAME=VALUE"),
        (["--command-config", "/missing"], "--command-config"),
        (["--output", ""], "--output: it must be a folder or URL"),
        (["--option", "kafka.sasl.password=planted"], "write sasl.password into the file of --command-config"),
    ],
)
def test_errors_are_named(more: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_common(common_parser("job", "", ""), [*LEAST, *more])
    error = capsys.readouterr().err
    assert reason in error
    assert "planted" not in error


def test_a_file_that_is_not_valid_is_named_without_its_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    file.write_text("sasl.password=planted\\u00zz\n")
    with pytest.raises(SystemExit):
        parse_common(common_parser("job", "", ""), [*LEAST, "--command-config", str(file)])
    error = capsys.readouterr().err
    assert str(file) in error
    assert "planted" not in error


@pytest.mark.parametrize("text", ["1 day", "1000 years", "12000 months", "52000 weeks", "365000 days"])
def test_an_interval_is_a_number_and_a_unit(text: str) -> None:
    assert interval("--ahead", text, years_max=1000) == text
    assert interval("--ahead", "300000 years") == "300000 years"


@pytest.mark.parametrize("text", ["soon", "300000 years", "1001 year", "12001 months", "999999999 hours"])
def test_an_interval_that_no_calendar_has_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="as in 1 day"):
        interval("--ahead", text, years_max=1000)
