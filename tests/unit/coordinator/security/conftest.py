"""Certificates for TLS, and keys that sign tokens."""

from __future__ import annotations

import pytest
from tests.unit.certificates import certificates
from tests.unit.coordinator.security.signer import Signer

__all__ = ["certificates"]


@pytest.fixture(scope="session")
def signer() -> Signer:
    return Signer()
