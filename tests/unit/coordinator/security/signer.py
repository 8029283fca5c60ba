"""Keys that sign tokens, and the key set of their public halves."""

from __future__ import annotations

import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm


class Signer:
    """Three private keys with the ids rsa, ec and ed."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(65537, 2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.ed = ed25519.Ed25519PrivateKey.generate()

    def public(self) -> dict[str, dict[str, Any]]:
        return {
            "rsa": {**RSAAlgorithm.to_jwk(self.rsa.public_key(), as_dict=True), "kid": "rsa"},
            "ec": {**ECAlgorithm.to_jwk(self.ec.public_key(), as_dict=True), "kid": "ec"},
            "ed": {**OKPAlgorithm.to_jwk(self.ed.public_key(), as_dict=True), "kid": "ed"},
        }

    def key_set(self, *names: str, **fields: str) -> bytes:
        public = self.public()
        return json.dumps({"keys": [{**public[name], **fields} for name in names or public]}).encode()

    def sign(self, claims: dict[str, Any], algorithm: str = "RS256", **headers: Any) -> str:
        name = {"R": "rsa", "P": "rsa", "E": "ec"}[algorithm[0]] if algorithm != "EdDSA" else "ed"
        headers = {"kid": name, **headers}
        return jwt.encode(
            claims,
            getattr(self, name),
            algorithm=algorithm,
            headers={key: value for key, value in headers.items() if value is not None},
        )
