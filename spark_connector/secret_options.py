"""Which options have secret values: passwords, private keys, JAAS texts. Pure.

Law
    An option that is a secret by its name is not accepted among the arguments of a process, and Spark shows its value
    in no plan.
"""

from __future__ import annotations

import re
from typing import Final

PATTERN: Final = "(?i:password|secret|jaas|keystore[._]key$|key[._]pem)"  # for Python and Java
_SECRET: Final = re.compile(PATTERN)


def is_secret(option: str) -> bool:
    """Return whether the value of the option of this name must not be shown."""
    return _SECRET.search(option) is not None


def redaction_pattern(pattern: str) -> str:
    """Return Spark's pattern of the options that it redacts, with PATTERN added once."""
    return pattern if PATTERN in pattern else f"{pattern}|{PATTERN}"
