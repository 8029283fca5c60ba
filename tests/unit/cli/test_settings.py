"""Where the settings of a command come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.cli.settings import UsageError, config_of, is_secret, pair, read_settings
from rota.client import AdminConfig, ConsumerConfig
from rota.client.errors import ConfigError


def settings(variables: dict[str, str], **given: object) -> dict[str, str]:
    return read_settings(variables, **{"bootstrap": None, "file": None, "timeout_s": 5, **given})  # type: ignore[arg-type]


def test_without_anything_it_is_the_broker_of_this_machine() -> None:
    assert settings({}) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "client.id": "rota-cli",
        "default.api.timeout.ms": "5000",
    }


def test_the_file_the_variables_and_the_options_override_each_other_in_that_order(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nclient.id=file\nretry.backoff.ms=1\n")
    variables = {"ROTA_COMMAND_CONFIG": str(file)}
    assert settings(variables)["bootstrap.servers"] == "file:1"
    variables |= {"ROTA_BOOTSTRAP_SERVER": "variable:1", "ROTA_CLIENT_CLIENT_ID": "variable"}
    assert settings(variables) | {} == {
        "bootstrap.servers": "variable:1",
        "client.id": "variable",
        "retry.backoff.ms": "1",
        "default.api.timeout.ms": "5000",
    }
    found = settings(variables, bootstrap="option:1", properties=["client.id=option"])
    assert (found["bootstrap.servers"], found["client.id"]) == ("option:1", "option")


def test_the_file_of_the_option_replaces_that_of_the_variable(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=mine\n")
    assert settings({"ROTA_COMMAND_CONFIG": "/does/not/exist"}, file=str(file))["client.id"] == "mine"


def test_a_file_serves_every_client(tmp_path: Path) -> None:
    given = {"bootstrap.servers": "a:1", "acks": "all", "group.id": "g"}
    assert config_of(AdminConfig, given).bootstrap == (("a", 1),)
    assert config_of(ConsumerConfig, given).group_id == "g"


def test_a_setting_of_no_client_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.server"):
        config_of(AdminConfig, {"bootstrap.server": "a:1"})


@pytest.mark.parametrize("name", ["ROTA_CLIENT_ID", "ROTA_CLIENT_"])
def test_a_variable_of_no_setting_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=f"variable {name} sets .* no setting of a client"):
        settings({name: "mine"})


@pytest.mark.parametrize(
    ("content", "error_text"), [(None, "cannot read .*: No such file"), ("a=\\u12", "line 1"), (b"\xff", "not UTF-8")]
)
def test_a_bad_file_is_named(tmp_path: Path, content: str | bytes | None, error_text: str) -> None:
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError, match=error_text):
        settings({}, file=str(file))


@pytest.mark.parametrize("text", ["", "a", "=b", " =b"])
def test_a_property_is_a_name_and_a_value(text: str) -> None:
    with pytest.raises(UsageError, match="NAME=VALUE"):
        pair(text)


def test_a_secret_is_not_repeated() -> None:
    with pytest.raises(UsageError, match="expected NAME=VALUE") as refused:
        pair("sasl.jaas.config:planted")
    assert "planted" not in str(refused.value)
    assert all(map(is_secret, ("ssl.keystore.key", "ssl_keystore_key", "SASL.PASSWORD", "ssl_key_pem")))
    assert not is_secret("ssl.keystore.location")
