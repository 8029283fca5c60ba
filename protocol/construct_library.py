"""The library construct. Its debugger and its checksums, half of what it would load, are loaded when they are used."""

from __future__ import annotations

from rota.protocol.loaded_later import loaded_later

with loaded_later("hashlib", "pdb"):
    import construct as c

__all__ = ["c"]
