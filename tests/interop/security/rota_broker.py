"""A Rota broker with the listeners of tools/peer/secure.py."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.interop.broker import PROPERTIES, STOP_S, _ready, _rota
from tools.peer.secure import PASSWORD, USER, SecureListeners


class SecureRota(SecureListeners):
    """The broker, its certificates and its user USER."""

    def __init__(self, folder: Path, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(folder)
        self._properties = dict(properties or {})
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        users = {"rota.scram.bootstrap.users": f"{USER}={PASSWORD}"}
        config = self.folder / "server.properties"
        settings = PROPERTIES | self.settings() | users | self._properties
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        read_fd, write_fd = os.pipe()
        with (self.folder / "broker.log").open("wb") as log:
            command = [_rota(), "serve", "--memory", "--config", config, "--ready-fd", str(write_fd)]
            self._process = subprocess.Popen(command, pass_fds=[write_fd], stdout=log, stderr=subprocess.STDOUT)
        os.close(write_fd)
        try:
            _ready(read_fd, self.folder / "broker.log")
        except BaseException:
            self.stop()
            raise
        finally:
            os.close(read_fd)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        log = (self.folder / "broker.log").read_text(errors="replace")
        assert "planted" not in log, "a secret is in the broker's log"

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
