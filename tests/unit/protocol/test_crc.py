"""The extension module gives what the package gives."""

from __future__ import annotations

import subprocess
import sys

import crc32c as package
from hypothesis import given
from hypothesis import strategies as st

from rota.protocol.crc import crc32c


def test_the_check_value_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_it_is_the_packages_and_can_be_continued(first: bytes, second: bytes) -> None:
    assert crc32c(first) == package.crc32c(first)
    assert crc32c(memoryview(second), crc32c(first)) == package.crc32c(first + second)


def test_the_import_loads_no_other_modules() -> None:
    code = "import rota.protocol.crc, sys; print('argparse' in sys.modules, 'importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
