"""Certificates for tests, made with the command `openssl` when the tests run: authorities, certificates that they sign,
PEM and PKCS12 stores. Nothing of it is ever committed."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.peer.jars import program

DAYS = "7"
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")  # RSA's prime numbers take up to a second
KEY_PASSWORD = "planted-key-password"


@dataclass(frozen=True)
class Certificate:
    """Files in PEM: a private key, its certificate, both in one file as Kafka's PEM keystores have them."""

    key: Path
    certificate: Path
    keystore: Path


class Authority:
    """A certificate authority in a folder. `certificate` is its own certificate, in PEM."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.name = folder, name
        self.certificate = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        subject = f"/O=Rota tests/CN={name}"
        _openssl(
            "req", "-x509", *NEW_KEY, "-nodes", "-days", DAYS, "-subj", subject,
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
            "-keyout", self._key, "-out", self.certificate,
        )  # fmt: skip

    def issue(self, name: str, *, hosts: tuple[str, ...] = (), subject: str | None = None) -> Certificate:
        """Sign a certificate. `hosts` are the DNS names and IPv4 addresses that it is for."""
        key, request, signed, extensions = (self.folder / f"{name}.{suffix}" for suffix in ("key", "csr", "crt", "ext"))
        alternatives = ",".join(f"{'IP' if host[0].isdigit() else 'DNS'}:{host}" for host in hosts)
        extensions.write_text(f"subjectAltName={alternatives}\n" if hosts else "basicConstraints=CA:FALSE\n")
        _openssl(
            "req", "-new", *NEW_KEY, "-nodes", "-subj", subject or f"/O=Rota tests/CN={name}",
            "-keyout", key, "-out", request,
        )  # fmt: skip
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial",
            "-days", DAYS, "-extfile", extensions, "-out", signed,
        )  # fmt: skip
        keystore = self.folder / f"{name}.pem"
        keystore.write_text(key.read_text() + signed.read_text())
        return Certificate(key, signed, keystore)


def encrypted_key(certificate: Certificate, password: str = KEY_PASSWORD) -> Path:
    """Write the private key again, encrypted (PKCS 8); return its file."""
    out = certificate.key.with_suffix(".encrypted.key")
    _openssl("pkcs8", "-topk8", "-v2", "aes256", "-in", certificate.key, "-passout", f"pass:{password}", "-out", out)
    return out


def pkcs12(certificate: Certificate, password: str = KEY_PASSWORD) -> Path:
    """Write key and certificate as a PKCS12 keystore; return its file."""
    out = certificate.key.with_suffix(".p12")
    _openssl(
        "pkcs12", "-export", "-inkey", certificate.key, "-in", certificate.certificate, "-passout", f"pass:{password}",
        "-out", out,
    )  # fmt: skip
    return out


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run([program("openssl"), *map(str, arguments)], capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]} failed: {done.stderr.decode()}")
