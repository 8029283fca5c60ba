"""One Kafka broker whose listeners have TLS and SASL, to test clients against.

with SecureKafka(folder) as kafka:
    kafka.address("SASL_SSL")     # HOST:PORT of a listener of LISTENERS
    kafka.ca                      # the certificate authority to trust, a PEM file
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tools.peer.broker import CLUSTER_ID, SETTINGS, STOP_S, wait_until_it_listens
from tools.peer.certificates import Authority
from tools.peer.jars import QUICK, fetch, java
from tools.ports import free_port

HEAP: Final = "512m"
USER: Final = "alice"
PASSWORD: Final = "planted-password-of-alice"  # every password and key of these tests begins with `planted-`
SESSION_MS: Final = 3_000  # of SASL_SHORT and OAUTH_SHORT
# listener -> security protocol
LISTENERS: Final = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "MTLS": "SSL",  # requires a certificate of the client
    "ELSEWHERE": "SSL",  # its certificate is for another host name
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "SASL_SHORT": "SASL_PLAINTEXT",  # sessions of SESSION_MS
    "OAUTH": "SASL_PLAINTEXT",  # OAUTHBEARER with unsecured tokens
}
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_MODULE: Final = "org.apache.kafka.common.security"


class SecureListeners:
    """Ports, certificates and settings of a broker with these listeners, Kafka's or another one with its settings."""

    def __init__(self, folder: Path, names: tuple[str, ...] = tuple(LISTENERS)) -> None:
        self.folder = folder
        self.authority = Authority(folder / "certificates")
        self.ca = self.authority.certificate
        self.client = self.authority.issue("client", subject="/O=Rota tests/OU=clients/CN=bob")
        self._server = self.authority.issue("server", hosts=("localhost", "127.0.0.1"))
        self._elsewhere = self.authority.issue("elsewhere", hosts=("elsewhere.example",))
        self.ports = {name: free_port() for name in names}

    def address(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"

    def settings(self) -> dict[str, str]:
        at = {name: f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()}
        return {
            "listeners": ",".join(at.values()),
            "advertised.listeners": ",".join(at.values()).replace("127.0.0.1", "localhost"),
            "listener.security.protocol.map": ",".join(f"{name}:{LISTENERS[name]}" for name in self.ports),
            "inter.broker.listener.name": "PLAINTEXT",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.num.partitions": "2",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._server.keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.elsewhere.ssl.keystore.location": str(self._elsewhere.keystore),
            "listener.name.elsewhere.ssl.keystore.type": "PEM",
            "listener.name.sasl_short.connections.max.reauth.ms": str(SESSION_MS),
            **_password_settings(),
            **_token_settings(),
        }


class SecureKafka(SecureListeners):
    """The broker, its certificates and its user USER. Passwords are in the settings file below `folder` alone."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Raises Missing, TimeoutError."""
        fetch()
        config = self.folder / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in self._all_settings().items()))
        with (self.folder / "broker.log").open("wb") as log:
            scram = (
                part
                for mechanism in MECHANISMS[1:]
                for part in ("--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]")
            )
            formatted = java(*QUICK, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config), *scram)
            subprocess.run(formatted, check=True, stdout=log, stderr=log)
            command = java(
                *QUICK, "kafka.Kafka", str(config), heap=os.environ.get("ROTA_PEER_HEAP", HEAP), quiet="warn"
            )
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            for port in self.ports.values():
                wait_until_it_listens(port, self._process)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """SIGTERM; SIGKILL when it has not ended after STOP_S."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _all_settings(self) -> dict[str, str]:
        control, own = free_port(), self.settings()
        return {
            **SETTINGS,
            **own,
            "controller.quorum.voters": f"0@127.0.0.1:{control}",
            "listeners": f"{own['listeners']},CONTROLLER://127.0.0.1:{control}",
            "listener.security.protocol.map": f"{own['listener.security.protocol.map']},CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
        }


def _password_settings() -> dict[str, str]:
    """The mechanisms of each listener whose users have passwords."""
    settings = {}
    plain = f'{_MODULE}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
    for listener in ("sasl_plaintext", "sasl_ssl", "sasl_short"):
        settings[f"listener.name.{listener}.sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
        settings[f"listener.name.{listener}.plain.sasl.jaas.config"] = plain
        for mechanism in MECHANISMS[1:]:
            module = f"{_MODULE}.scram.ScramLoginModule required;"
            settings[f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"] = module
    return settings


def _token_settings() -> dict[str, str]:
    """The listener OAUTH: tokens without a signature are valid."""
    settings = {}
    bearer = f'{_MODULE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    validator = f"{_MODULE}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    settings["listener.name.oauth.sasl.enabled.mechanisms"] = "OAUTHBEARER"
    settings["listener.name.oauth.oauthbearer.sasl.jaas.config"] = bearer
    settings["listener.name.oauth.oauthbearer.sasl.server.callback.handler.class"] = validator
    settings["listener.name.oauth.connections.max.reauth.ms"] = "3600000"
    return settings


def unsecured_token(principal: str, seconds: float) -> str:
    """Return a JSON web token without a signature (`alg` none), valid for so many seconds from now."""
    now = time.time()
    claims = {"sub": principal, "iat": int(now), "exp": int(now + seconds)}
    return f"{_base64url({'alg': 'none'})}.{_base64url(claims)}."


def _base64url(value: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
