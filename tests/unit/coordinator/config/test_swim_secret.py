from __future__ import annotations

from pathlib import Path

import pytest

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.swim_secret import FILE_BYTES_MAX, swim_secret


def test_the_secret_is_that_of_the_property_or_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("planted-swim-secret\n")
    assert swim_secret(BrokerConfig({"rota.swim.secret.file": str(file)})) == b"planted-swim-secret"
    assert swim_secret(BrokerConfig({"rota.swim.secret": "planted-other"})) == b"planted-other"
    assert swim_secret(BrokerConfig()) == b""


@pytest.mark.parametrize("content", [None, b" \n", b"x" * (FILE_BYTES_MAX + 1)])
def test_a_file_without_a_secret_is_refused(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigRefused, match=r"rota\.swim\.secret\.file"):
        swim_secret(BrokerConfig({"rota.swim.secret.file": str(file)}))


def test_two_secrets_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("planted-a")
    with pytest.raises(ConfigRefused, match="exclude each other") as refused:
        swim_secret(BrokerConfig({"rota.swim.secret.file": str(tmp_path / "secret"), "rota.swim.secret": "planted-b"}))
    assert "planted" not in str(refused.value)
