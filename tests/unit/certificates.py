"""Certificates for TLS, made once by `openssl`."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest
from tools.peer.certificates import Authority, Certificate


@dataclass(frozen=True)
class Certificates:
    """`server` is for localhost and 127.0.0.1, `elsewhere` for another name; `untrusted` is of another authority."""

    ca: Path
    server: Certificate
    elsewhere: Certificate
    client: Certificate
    untrusted: Certificate
    other_ca: Path

    def listener(self, certificate: Certificate | None = None, *, requires_client: bool = False) -> ssl.SSLContext:
        """The context of a broker's listener."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain((certificate or self.server).keystore)
        if requires_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.ca)
        return context


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    ours = Authority(tmp_path_factory.mktemp("certificates"))
    other = Authority(tmp_path_factory.mktemp("other"), "other-ca")
    return Certificates(
        ours.certificate,
        ours.issue("server", hosts=("localhost", "127.0.0.1")),
        ours.issue("elsewhere", hosts=("elsewhere.example",)),
        ours.issue("client"),
        other.issue("untrusted"),
        other.certificate,
    )
