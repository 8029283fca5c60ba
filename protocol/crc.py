"""CRC32C, as record batches and snapshots carry it. Pure: bytes in, a number out.

Importing the package `crc32c` takes 20 ms: it reads the metadata of installed packages for its version and imports a
command-line parser. Its extension module needs neither and is loaded directly.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import cast

Crc = Callable[..., int]


def _load() -> Crc:
    package = find_spec("crc32c")  # does not import the package
    if package is not None:
        inner = PathFinder.find_spec("_crc32c", package.submodule_search_locations)
        if inner is not None and inner.loader is not None:
            module = module_from_spec(inner)
            inner.loader.exec_module(module)
            return cast(Crc, module.crc32c)
    from crc32c import crc32c  # another layout of the package

    return cast(Crc, crc32c)


crc32c: Crc = _load()
"""`crc32c(data, value=0)`: the checksum of bytes, or of bytes that follow others with the checksum `value`."""
