"""deploy/systemd: the unit by systemd's own checks, and the settings and times that it gives by the broker's."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rota.coordinator.admin.options import ServeOptions, parse_plain
from rota.coordinator.config.broker import BrokerConfig

FOLDER = Path(__file__).parents[4] / "deploy" / "systemd"
EXPOSURE_MAX = "20"  # of systemd-analyze security, in tenths: 100 is no protection at all
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed: the unit is not verified"
)


def setting(name: str) -> str:
    """The value of a name that the unit sets once."""
    (value,) = re.findall(rf"^{name}=(.*)$", (FOLDER / "rota.service").read_text(), re.MULTILINE)
    return str(value)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The unit with a program that exists: systemd-analyze refuses others."""
    unit = tmp_path / "rota.service"
    unit.write_text((FOLDER / "rota.service").read_text().replace("/opt/rota/bin/rota", sys.executable))
    return unit


@needs_systemd
def test_systemd_accepts_the_unit(installed: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", installed], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
def test_the_service_can_harm_little(installed: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", installed]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_command_of_the_unit_serves_the_settings_beside_it() -> None:
    program, command, *arguments = setting("ExecStart").split()
    assert (program, command) == ("/opt/rota/bin/rota", "serve")
    variables = dict(re.findall(r"^(\w+)=(.*)$", (FOLDER / "rota.default").read_text(), re.MULTILINE))
    assert arguments.pop() == "$ROTA_OPTIONS"
    assert variables == {"ROTA_OPTIONS": ""}
    assert parse_plain(arguments) == ServeOptions(config="/etc/rota/rota.properties")
    config = ServeOptions(config=str(FOLDER / "rota.properties")).broker_config()
    assert config.warnings == ()
    assert [Path(folder).parent for folder in config.log_dirs] == [Path("/var/lib") / setting("StateDirectory")]


def test_systemd_waits_longer_than_a_stop_takes() -> None:
    assert setting("Type") == "notify"
    config = BrokerConfig()
    stop_ms_max = config.rota_drain_timeout_ms + config.zookeeper_session_timeout_ms
    assert int(setting("TimeoutStopSec")) * 1000 > 2 * stop_ms_max
    assert int(setting("WatchdogSec")) * 1000 > config.zookeeper_session_timeout_ms, "others take it for dead first"


def test_the_user_of_the_unit_is_created() -> None:
    kind, user, _ = (FOLDER / "rota.sysusers.conf").read_text().splitlines()[-1].split(maxsplit=2)
    assert (kind, user, user) == ("u", setting("User"), setting("Group"))
