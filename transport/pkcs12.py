"""PKCS12 stores, as keytool writes them, by the package `cryptography`, which Rota does not require."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.transport.errors import SettingRefused

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates


def trusted_certificates(content: bytes, password: str | None, setting: str) -> str:
    """Return the certificates of a truststore in PEM. Raises SettingRefused."""
    store = _load(content, password, setting)
    from cryptography.hazmat.primitives.serialization import Encoding

    certificates = [store.cert, *store.additional_certs]
    pem: str = "".join(
        each.certificate.public_bytes(Encoding.PEM).decode() for each in certificates if each is not None
    )
    return pem


def key_and_chain(content: bytes, password: str | None, setting: str) -> bytes:
    """Return key and certificates of a keystore in PEM, the client's certificate first. Raises SettingRefused."""
    store = _load(content, password, setting)
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if store.key is None or store.cert is None:
        raise SettingRefused(setting, "is a PKCS12 store without a key and its certificate")
    chain = [store.cert, *store.additional_certs]
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem: bytes = key + b"".join(each.certificate.public_bytes(Encoding.PEM) for each in chain if each is not None)
    return pem


def _load(content: bytes, password: str | None, setting: str) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        remedy = "pip install cryptography, or convert it to PEM: openssl pkcs12 -in FILE -nodes -out FILE.pem"
        raise SettingRefused(setting, f"is a PKCS12 store, which needs the package cryptography: {remedy}") from None
    try:
        store: PKCS12KeyAndCertificates = load_pkcs12(content, password.encode() if password is not None else None)
    except ValueError:
        password_setting = setting.replace("location", "password")
        raise SettingRefused(setting, f"is a PKCS12 store that {password_setting} does not open") from None
    return store
