"""PKCS12 stores. What `cryptography` reads is tested where that package is installed; `make test` does without."""

import pytest

from rota.transport.errors import SettingRefused
from rota.transport.pkcs12 import key_and_chain, trusted_certificates


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.serialization.pkcs12", None)
    with pytest.raises(SettingRefused, match=r"ssl_keystore_location .*pip install cryptography"):
        key_and_chain(b"0", None, "ssl_keystore_location")
    with pytest.raises(SettingRefused, match=r"convert it to PEM: openssl pkcs12"):
        trusted_certificates(b"0", None, "ssl_truststore_location")
