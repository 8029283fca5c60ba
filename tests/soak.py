"""How much the tests try: `make test` the gate's share, `make soak` (ROTA_SOAK=1) several times as much.

In the gate Hypothesis draws the same examples in each run (derandomize), so that a change fails for its own faults. The
soak draws new ones; a seed or an example that fails there is added to seeds.txt or to the test.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

SOAK: Final = os.environ.get("ROTA_SOAK") == "1"
EXAMPLES_FACTOR: Final = 10


def examples(gate: int) -> int:
    """`max_examples` of a Hypothesis test that draws `gate` examples in the gate."""
    return gate * EXAMPLES_FACTOR if SOAK else gate


def seeds(gate: int, soak: int) -> range:
    """The seeds of a simulation or a chaos test."""
    return range(1, (soak if SOAK else gate) + 1)


soak_only = pytest.mark.soak
"""Marks a test or a parameter that only the soak runs; tests/conftest.py deselects it in the gate."""
