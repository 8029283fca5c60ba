"""Certificates for TLS."""

from __future__ import annotations

from tests.unit.certificates import certificates

__all__ = ["certificates"]
