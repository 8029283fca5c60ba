"""The context of a listener from Kafka's properties. SC3: new certificates without a restart; SC8: what is trusted."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path

import pytest
from tests.unit.certificates import Certificates

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.listener_security import ListenerSecurity
from rota.coordinator.security.principal import ANONYMOUS, Principal
from rota.coordinator.security.principal_mapping import NoMatchingRule
from rota.coordinator.security.tls import ListenerTls, server_context


def security_of(keystore: Path | str, **properties: str) -> ListenerSecurity:
    named = {name.replace("_", "."): text for name, text in properties.items()}
    return BrokerConfig({"listeners": "SSL://:0", "ssl.keystore.location": str(keystore), **named}).security["SSL"]


def certificate_of(server: ssl.SSLContext, client: ssl.SSLContext | None = None) -> tuple[bytes, ssl.SSLObject]:
    """Handshake in memory; return the server's certificate and the server's side."""
    if client is None:
        client = ssl.create_default_context()
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server)
    for side in (theirs, ours, theirs, ours, theirs):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return theirs.getpeercert(binary_form=True) or b"", ours


def der(path: Path) -> bytes:
    text = path.read_text()
    return ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN CERTIFICATE") :])


@pytest.mark.parametrize("inline", [False, True])
def test_a_keystore_is_a_file_or_inline(certificates: Certificates, inline: bool) -> None:
    server = certificates.server
    security = security_of(
        "" if inline else server.keystore,
        **{
            "ssl.keystore.key": server.key.read_text(),
            "ssl.keystore.certificate.chain": server.certificate.read_text(),
        }
        if inline
        else {},
    )
    assert certificate_of(server_context(security))[0] == der(server.certificate)


def test_a_principal_is_the_name_in_the_clients_certificate(certificates: Certificates) -> None:
    security = security_of(
        certificates.server.keystore,
        ssl_client_auth="required",
        ssl_truststore_location=str(certificates.ca),
        ssl_principal_mapping_rules="RULE:CN=(.*),O=Rota tests/$1/U",
    )
    client = ssl.create_default_context(cafile=str(certificates.ca))
    client.check_hostname = False
    client.load_cert_chain(certificates.client.keystore)
    tls = ListenerTls(security)
    _, connection = certificate_of(tls.context, client)
    assert tls.principal_of(connection) == Principal("User", "CLIENT")
    other = ListenerTls(security_of(certificates.server.keystore, ssl_principal_mapping_rules="RULE:O=x/y/"))
    with pytest.raises(NoMatchingRule):
        other.principal_of(connection)


def test_a_certificate_of_the_trust_store_is_trusted_whoever_signed_it(certificates: Certificates) -> None:
    trusted = certificates.untrusted  # its authority is unknown here
    security = security_of(
        certificates.server.keystore, ssl_client_auth="required", ssl_truststore_location=str(trusted.certificate)
    )
    client = ssl.create_default_context(cafile=str(certificates.ca))
    client.check_hostname = False
    client.load_cert_chain(trusted.keystore)
    _, connection = certificate_of(server_context(security), client)
    assert connection.getpeercert(binary_form=True) == der(trusted.certificate)
    client.load_cert_chain(certificates.client.keystore)
    with pytest.raises(ssl.SSLCertVerificationError):
        certificate_of(server_context(security), client)


def test_a_client_without_a_certificate_is_anonymous(certificates: Certificates) -> None:
    tls = ListenerTls(security_of(certificates.server.keystore))
    assert tls.principal_of(certificate_of(tls.context)[1]) == ANONYMOUS


def test_new_files_count_for_the_next_connection_and_broken_ones_do_not(
    certificates: Certificates, tmp_path: Path
) -> None:
    keystore = tmp_path / "keystore.pem"
    shutil.copyfile(certificates.server.keystore, keystore)
    security = security_of(keystore)
    tls = ListenerTls(security)
    before = tls.context
    tls.refresh(security)
    assert tls.context is before
    keystore.write_text(certificates.elsewhere.keystore.read_text() + "\n")
    tls.refresh(security)
    assert certificate_of(tls.context)[0] == der(certificates.elsewhere.certificate)
    keystore.write_text("nonsense")
    tls.refresh(security)
    assert certificate_of(tls.context)[0] == der(certificates.elsewhere.certificate)


def test_a_change_of_a_property_counts_for_the_next_connection(certificates: Certificates) -> None:
    tls = ListenerTls(security_of(certificates.server.keystore))
    tls.refresh(security_of(certificates.elsewhere.keystore))
    assert certificate_of(tls.context)[0] == der(certificates.elsewhere.certificate)


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"ssl.keystore.location": ""}, "ssl.keystore.location of the listener SSL is missing"),
        ({"ssl.keystore.location": "/nowhere"}, "ssl.keystore.location of the listener SSL cannot be read"),
        ({"ssl.truststore.location": "/nowhere"}, "ssl.truststore.location of the listener SSL cannot be read"),
        ({"ssl.principal.mapping.rules": "RULE:"}, "Invalid rule"),
        ({"ssl.cipher.suites": "NONSENSE"}, "ssl.cipher.suites of the listener SSL names no cipher suite"),
    ],
)
def test_what_cannot_be_used_is_refused_by_the_name_of_its_property(
    certificates: Certificates, properties: dict[str, str], reason: str
) -> None:
    security = security_of(**{"keystore": certificates.server.keystore, **properties})
    with pytest.raises(ConfigRefused, match=reason):
        ListenerTls(security)


def test_versions_of_tls_are_limited(certificates: Certificates) -> None:
    context = server_context(security_of(certificates.server.keystore, ssl_enabled_protocols="TLSv1.2"))
    assert context.maximum_version is ssl.TLSVersion.TLSv1_2


def test_refused_rules_keep_the_certificates_too(certificates: Certificates) -> None:
    """SC3. The log says that TLS keeps its certificates."""
    tls = ListenerTls(security_of(certificates.server.keystore))
    tls.refresh(security_of(certificates.elsewhere.keystore, ssl_principal_mapping_rules="RULE:broken"))
    assert certificate_of(tls.context)[0] == der(certificates.server.certificate)
