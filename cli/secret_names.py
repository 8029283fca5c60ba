"""Which settings and configs have secret values: the command line never prints those. Pure."""

from __future__ import annotations

import re
from typing import Final

_SECRET: Final = re.compile(
    r"password|passphrase|secret|jaas|keystore[._]key|key[._]pem|credential|digest$|bootstrap[._]users$", re.IGNORECASE
)


def is_secret(name: str) -> bool:
    """Return whether the value of the setting or config of this name must not be printed."""
    return _SECRET.search(name) is not None
