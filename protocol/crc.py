"""CRC32C, as record batches and snapshots carry it. Pure: bytes in, a number out.

The package `crc32c` reads the metadata of what is installed to tell its version, and a parser of command lines beside;
that is 20 ms of a start. Its extension module does the sums and needs neither, so that is what is loaded here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import cast

Crc = Callable[..., int]


def _load() -> Crc:
    package = find_spec("crc32c")  # finds, and does not run it
    if package is not None:
        inner = PathFinder.find_spec("_crc32c", package.submodule_search_locations)
        if inner is not None and inner.loader is not None:
            module = module_from_spec(inner)
            inner.loader.exec_module(module)
            return cast(Crc, module.crc32c)
    from crc32c import crc32c  # it is laid out in another way than we know

    return cast(Crc, crc32c)


crc32c: Crc = _load()
"""`crc32c(data, value=0)`: the checksum of bytes, or of what follows bytes whose checksum is `value`."""
