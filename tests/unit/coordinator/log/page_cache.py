"""Folders for tests of what is in the page cache: a file system in memory, as /tmp is on many machines, cannot tell."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


def has_page_cache(folder: Path) -> bool:
    """Whether reads that do not wait for the disk are known there."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")
        file.flush()
        os.fsync(file.fileno())
        try:
            return os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT) == 1
        except BlockingIOError:
            return True
        except (AttributeError, OSError):
            return False


@contextmanager
def folder_with_page_cache(first: Path) -> Iterator[Path]:
    """This folder, else one in the repository until the block ends. Skips the test where neither has a page cache."""
    if has_page_cache(first):
        yield first
    elif has_page_cache(ROOT):
        with tempfile.TemporaryDirectory(dir=ROOT, prefix=".page-cache-") as folder:
            yield Path(folder)
    else:
        pytest.skip(f"neither {first} nor {ROOT} is on a file system that tells what the page cache has")
