"""Signatures, algorithms, audiences and issuers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.coordinator.security.oauth.test_access_token import NOW, NOW_MS, VALID, part, token
from tests.unit.coordinator.security.signer import Signer

from rota.coordinator.security.oauth.access_token import AccessToken, Claims, TokenRefused
from rota.coordinator.security.oauth.key_set import Intervals, KeySet, parse_keys
from rota.coordinator.security.oauth.signed_token import SignedValidator


def validator(key_set: bytes, **expected: Any) -> SignedValidator:
    keys = KeySet("file:///keys", Intervals(), lambda: 0)
    keys._keys = parse_keys(key_set)
    return SignedValidator(keys, Claims(requires_issue_time=True), lambda: NOW_MS, **expected)


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "PS384", "ES256", "EdDSA"])
def test_a_token_that_a_key_has_signed_is_valid(signer: Signer, algorithm: str) -> None:
    decides = validator(signer.key_set())
    assert decides.validate(signer.sign(VALID, algorithm)) == AccessToken("alice", (NOW + 60) * 1000)


def test_a_changed_token_is_refused(signer: Signer) -> None:
    header, _, signature = signer.sign(VALID).split(".")
    changed = f"{header}.{part({**VALID, 'sub': 'root'})}.{signature}"
    with pytest.raises(TokenRefused, match="signature is wrong"):
        validator(signer.key_set()).validate(changed)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", ""])
def test_a_token_without_a_signature_is_refused(signer: Signer, algorithm: str) -> None:
    for key_id in ({}, {"kid": "rsa"}):
        with pytest.raises(TokenRefused):
            validator(signer.key_set()).validate(token({"alg": algorithm, **key_id}))


def test_a_public_key_is_no_hmac_secret(signer: Signer) -> None:
    public = signer.rsa.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{part(VALID)}"
    mac = base64.urlsafe_b64encode(hmac.digest(public, signed.encode(), hashlib.sha256)).rstrip(b"=").decode()
    with pytest.raises(TokenRefused, match="algorithm"):
        validator(signer.key_set()).validate(f"{signed}.{mac}")


def test_a_key_in_the_token_is_ignored(signer: Signer) -> None:
    other_signer = Signer()
    forged = other_signer.sign(VALID, jwk=other_signer.public()["rsa"], jku="http://evil.example/keys")
    with pytest.raises(TokenRefused, match="signature is wrong"):
        validator(signer.key_set()).validate(forged)


def test_a_key_verifies_its_own_algorithm_alone(signer: Signer) -> None:
    decides = validator(signer.key_set("rsa", alg="RS512"))
    assert decides.validate(signer.sign(VALID, "RS512"))
    with pytest.raises(TokenRefused, match="algorithm"):
        decides.validate(signer.sign(VALID, "RS256"))


def test_a_token_without_a_key_id_has_the_only_key(signer: Signer) -> None:
    anonymous = signer.sign(VALID, kid=None)
    assert validator(signer.key_set("rsa")).validate(anonymous)
    twice = json.dumps({"keys": [signer.public()["rsa"], {**Signer().public()["rsa"], "kid": "other"}]}).encode()
    with pytest.raises(TokenRefused, match="no key id"):
        validator(twice).validate(anonymous)


def test_an_extension_that_a_token_demands_is_refused(signer: Signer) -> None:
    with pytest.raises(TokenRefused):
        validator(signer.key_set()).validate(signer.sign(VALID, crit=["exp"]))


def test_audience_and_issuer_are_those_expected(signer: Signer) -> None:
    expects = validator(signer.key_set(), audiences=["kafka", "rota"], issuer="https://issuer")
    right = {**VALID, "aud": ["x", "rota"], "iss": "https://issuer"}
    assert expects.validate(signer.sign(right))
    for changes in ({"aud": "x"}, {"iss": "x"}, {"aud": None}, {"iss": None}):
        claims = {name: value for name, value in {**right, **changes}.items() if value is not None}
        with pytest.raises(TokenRefused, match=r"audience|issuer"):
            expects.validate(signer.sign(claims))
    with pytest.raises(TokenRefused, match="audience"):
        validator(signer.key_set()).validate(signer.sign({**VALID, "aud": "kafka"}))


@pytest.mark.parametrize(("name", "value"), [("exp", NOW - 1), ("nbf", NOW + 9), ("iat", None), ("sub", 7)])
def test_the_claims_count_as_well(signer: Signer, name: str, value: Any) -> None:
    claims = {key: each for key, each in {**VALID, name: value}.items() if each is not None}
    with pytest.raises(TokenRefused):
        validator(signer.key_set("ed")).validate(signer.sign(claims, "EdDSA"))


def test_a_header_is_bounded(signer: Signer) -> None:
    with pytest.raises(TokenRefused, match="header is too long"):
        validator(signer.key_set()).validate(signer.sign(VALID, x="x" * 20_000))


@given(st.text(max_size=60), st.binary(max_size=60))
def test_garbage_is_refused(text: str, bytes_: bytes) -> None:
    decides = validator(KEYS)
    encoded = base64.urlsafe_b64encode(bytes_).decode()
    for each in (text, f"{text}.{text}.{text}", f"{encoded}.{encoded}.{encoded}", f"{part({'alg': 'RS256'})}.{text}.x"):
        with pytest.raises(TokenRefused):
            decides.validate(each)


def test_pyjwt_has_no_part_in_a_broker_without_oauthbearer() -> None:
    source = Path(__file__).parents[5] / "coordinator/security/sasl/authentication.py"
    imports = [line for line in source.read_text().splitlines() if line.startswith(("import", "from"))]
    assert not [line for line in imports if "oauth" in line]


KEYS = Signer().key_set()
