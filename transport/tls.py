"""TLS of a client: from Kafka's ssl.* settings to an `ssl.SSLContext`, and from OpenSSL's errors to what is wrong.

Laws
    The broker's certificate is always verified; its host name too, unless ssl_endpoint_identification_algorithm is "".
    A setting that cannot be used (a missing file, a wrong password, another kind of store) is refused before any
    connection is made, by the name of the setting. No message contains a key or a password.
    PEM in a text may be on one line, with spaces where its lines end, as Kafka's clients read it from properties.
    A key that is given as text is on disk only while OpenSSL reads it, in a file that no other user may read.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from dataclasses import field
from pathlib import Path
from typing import Final

from rota.protocol.dataclass import dataclass
from rota.transport.errors import SettingRefused, TlsFailed

PROTOCOLS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
STORE_TYPES: Final = ("PEM", "PKCS12")
STORE_BYTES_MAX: Final = 16 * 1024 * 1024
_JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_PEM: Final = b"-----BEGIN "
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]*)-----END \1-----")
_ENCRYPTED: Final = re.compile(rb"-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Kafka's ssl.* settings of a client. Empty text and None: not set."""

    truststore_location: str | None = None
    truststore_type: str | None = None
    truststore_password: str | None = field(default=None, repr=False)
    truststore_certificates: str | None = None
    keystore_location: str | None = None
    keystore_type: str | None = None
    keystore_password: str | None = field(default=None, repr=False)
    keystore_key: str | None = field(default=None, repr=False)
    keystore_certificate_chain: str | None = None
    key_password: str | None = field(default=None, repr=False)
    certificate_location: str | None = None  # librdkafka's pair of files
    key_location: str | None = None
    endpoint_identification_algorithm: str = "https"
    enabled_protocols: tuple[str, ...] = tuple(PROTOCOLS)
    cipher_suites: tuple[str, ...] = ()


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context of a client's connections. Raises SettingRefused."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.endpoint_identification_algorithm not in ("", "none")
    configure(context, settings)
    return context


def configure(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Set protocols, cipher suites and certificates in the context of a client or a listener. Raises SettingRefused."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Java, each certificate of the store is an anchor
    _set_protocols(context, settings.enabled_protocols)
    if settings.cipher_suites:
        _set_ciphers(context, settings.cipher_suites)
    _load_trusted(context, settings)
    _load_own(context, settings)


def _set_protocols(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    versions = [PROTOCOLS[name] for name in names if name in PROTOCOLS]
    if not versions or len(versions) < len(names):
        raise SettingRefused("ssl_enabled_protocols", f"is {','.join(names)!r}; it must be of {', '.join(PROTOCOLS)}")
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _set_ciphers(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    """Choose the cipher suites of TLS 1.2, by OpenSSL's names or Java's. OpenSSL always allows those of TLS 1.3."""
    older = [_openssl_name(name) for name in names if not re.match(r"TLS_(AES|CHACHA20)_", name)]
    if not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    try:
        context.set_ciphers(":".join(older))
    except ssl.SSLError:
        problem = f"names no cipher suite that OpenSSL has: {', '.join(names)}"
        raise SettingRefused("ssl_cipher_suites", problem) from None


def _openssl_name(name: str) -> str:
    """Return OpenSSL's name of a suite: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256."""
    if not name.startswith("TLS_"):
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = re.sub(r"AES_(128|256)", r"AES\1", cipher).replace("_CBC", "").replace("POLY1305_SHA256", "POLY1305")
    return f"{'' if exchange == 'RSA' else exchange + '_'}{cipher}".replace("_", "-")


# ---- the certificates that are trusted


def _load_trusted(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.truststore_certificates:
        _trust(context, "ssl_truststore_certificates", _in_lines(settings.truststore_certificates))
        return
    if not settings.truststore_location:
        context.load_default_certs()
        return
    name = "ssl_truststore_location"
    content = _read(name, settings.truststore_location)
    if _store_type("ssl_truststore_type", settings.truststore_type, name, content) == "PKCS12":
        from rota.transport.pkcs12 import trusted_certificates

        _trust(context, name, trusted_certificates(content, settings.truststore_password, name))
    else:
        _trust(context, name, content.decode("latin-1"))


def _trust(context: ssl.SSLContext, name: str, certificates: str) -> None:
    try:
        context.load_verify_locations(cadata="\n".join(_CERTIFICATE.findall(certificates)))
    except (ssl.SSLError, ValueError, TypeError):  # TypeError: text that is not ASCII
        raise SettingRefused(name, "has no certificate in PEM that can be read") from None


def _in_lines(pem: str) -> str:
    """Write each block of base64 in lines, as OpenSSL has to have it."""

    def block(match: re.Match[str]) -> str:
        label, body = match[1], "".join(match[2].split())
        lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
        return f"\n-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"

    return _BLOCK.sub(block, pem)


# ---- the client's own key and certificate


def _load_own(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.keystore_key or settings.keystore_certificate_chain:
        if not (settings.keystore_key and settings.keystore_certificate_chain):
            raise SettingRefused("ssl_keystore_key", "and ssl_keystore_certificate_chain go together: set both")
        pem = _in_lines(f"{settings.keystore_key}\n{settings.keystore_certificate_chain}\n")
        _load_pem(context, "ssl_keystore_key", pem.encode(), settings.key_password)
    elif settings.certificate_location or settings.key_location:
        certificate = _read("ssl_certificate_location", settings.certificate_location or settings.key_location or "")
        key = _read("ssl_key_location", settings.key_location or settings.certificate_location or "")
        _load_pem(context, "ssl_key_location", key + b"\n" + certificate, settings.key_password)
    elif settings.keystore_location:
        _load_keystore(context, settings)


def _load_keystore(context: ssl.SSLContext, settings: TlsSettings) -> None:
    name = "ssl_keystore_location"
    content = _read(name, settings.keystore_location or "")
    if _store_type("ssl_keystore_type", settings.keystore_type, name, content) == "PKCS12":
        from rota.transport.pkcs12 import key_and_chain

        content = key_and_chain(content, settings.keystore_password, name)
        _load_pem(context, name, content, None)
    else:
        _load_pem(context, name, content, settings.key_password or settings.keystore_password)


def _load_pem(context: ssl.SSLContext, name: str, pem: bytes, password: str | None) -> None:
    is_encrypted = _ENCRYPTED.search(pem) is not None
    if is_encrypted and not password:
        raise SettingRefused(name, "has an encrypted key: set ssl_key_password")
    file, path = tempfile.mkstemp(prefix="rota-", suffix=".pem")  # for its owner alone
    try:
        with os.fdopen(file, "wb") as out:
            out.write(pem)
        context.load_cert_chain(path, password=lambda: password or "")
    except (ssl.SSLError, ValueError) as cause:  # ValueError: a password of more than 1024 bytes
        raise SettingRefused(name, _why_not_loaded(cause, password, is_encrypted)) from None
    finally:
        Path(path).unlink()


def _why_not_loaded(cause: ssl.SSLError | ValueError, password: str | None, is_encrypted: bool) -> str:
    if "VALUES_MISMATCH" in (getattr(cause, "reason", None) or ""):
        return "has a key that does not belong to its first certificate"
    if password and is_encrypted:
        return "has an encrypted key that ssl_key_password does not open"
    return "has no private key and certificate in PEM that can be read"


# ---- files


def _read(name: str, path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(STORE_BYTES_MAX + 1)
    except OSError as cause:
        raise SettingRefused(name, f"cannot be read: {path}: {cause.strerror}") from None
    if len(content) > STORE_BYTES_MAX:
        raise SettingRefused(name, f"has more than {STORE_BYTES_MAX} bytes: {path}")
    return content


def _store_type(type_name: str, given: str | None, name: str, content: bytes) -> str:
    """Return PEM or PKCS12: the content decides, since clients of other languages do not set the type."""
    if given and given.upper() not in (*STORE_TYPES, "JKS"):
        raise SettingRefused(type_name, f"is {given!r}; it must be one of {', '.join(STORE_TYPES)}")
    if content.startswith(_JKS):
        remedy = "convert it: keytool -importkeystore -srckeystore FILE -destkeystore FILE.p12 -deststoretype PKCS12"
        raise SettingRefused(name, f"is a JKS store, which only Java reads; {remedy}")
    if _PEM in content:
        return "PEM"
    if content[:1] == b"\x30":
        return "PKCS12"
    raise SettingRefused(name, f"is neither PEM nor PKCS12 ({len(content)} bytes)")


# ---- what went wrong in a handshake

_CERTIFICATE_PROBLEMS: Final = {
    18: "its certificate signed itself, and the truststore does not have it",
    19: "an authority signed its certificate that the truststore does not have",
    20: "an authority signed its certificate that the truststore does not have",
    21: "an authority signed its certificate that the truststore does not have",
    10: "its certificate has expired",
    9: "its certificate is not valid yet",
}
_TRUST_REMEDY: Final = "set ssl_truststore_location to the certificate of the authority, in PEM"
_HOST_PROBLEMS: Final = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_ALERTS: Final = {
    "CERTIFICATE_REQUIRED": "the broker requires a certificate of the client: set ssl_keystore_location",
    "BAD_CERTIFICATE": "the broker refused the client's certificate, or requires one: see ssl_keystore_location",
    "UNKNOWN_CA": "the broker does not trust the authority of the client's certificate (ssl_keystore_location)",
    "CERTIFICATE_UNKNOWN": "the broker does not accept the client's certificate (ssl_keystore_location)",
    "CERTIFICATE_EXPIRED": "the client's certificate has expired (ssl_keystore_location)",
    "PROTOCOL_VERSION": "the broker accepts none of the protocols in ssl_enabled_protocols",
    "HANDSHAKE_FAILURE": "broker and client have no cipher suite in common, or the broker requires a certificate of "
    "the client (ssl_cipher_suites, ssl_keystore_location)",
}
_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST")


def tls_failure(peer: str, host: str, cause: ssl.SSLError) -> TlsFailed:
    """Return the error for a failed handshake, or for an alert of the broker after it."""
    return TlsFailed(f"no TLS connection to broker {peer}: {_explain(host, cause)}", broker=peer)


def _explain(host: str, cause: ssl.SSLError) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _explain_certificate(host, cause)
    reason = getattr(cause, "reason", None) or ""  # OpenSSL's errors have one, those of asyncio may have none
    for alert, text in _ALERTS.items():
        if reason.endswith(f"ALERT_{alert}"):
            return text
    if reason in _NOT_TLS:
        return (
            "it answered with something else than TLS: is it a listener for security_protocol PLAINTEXT or "
            "SASL_PLAINTEXT?"
        )
    if reason in ("NO_PROTOCOLS_AVAILABLE", "UNSUPPORTED_PROTOCOL"):
        return "broker and client have no version of TLS in common (ssl_enabled_protocols)"
    return f"{reason or cause}".lower().replace("_", " ")


def _explain_certificate(host: str, cause: ssl.SSLCertVerificationError) -> str:
    if cause.verify_code in _HOST_PROBLEMS:
        return (
            f"its certificate is not for the host name {host}; connect by a name that is in it, or set "
            "ssl_endpoint_identification_algorithm to an empty text"
        )
    known = _CERTIFICATE_PROBLEMS.get(cause.verify_code)
    if known is None:
        return f"its certificate is not valid: {cause.verify_message}"
    return f"{known} ({cause.verify_message})" + (f"; {_TRUST_REMEDY}" if cause.verify_code > 10 else "")
