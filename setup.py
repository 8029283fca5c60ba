"""Compiles the record codecs with mypyc where a C compiler is installed; elsewhere the same files run interpreted.

ROTA_COMPILE=0 does not compile, ROTA_COMPILE=1 raises when the compilation fails; unset, a failure is a warning.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

COMPILED = [f"src/rota/protocol/records/{name}.py" for name in ("fast", "consumed", "columns")]
# mypyc makes one shared library, rota.protocol.records.compiled__mypyc, and for each module an extension shim of the
# module's name that loads it
LIBRARY = "rota.protocol.records.compiled"
COMPILE_MODE = os.environ.get("ROTA_COMPILE", "")


class BuildAllOrNone(build_ext):
    """Builds the library and all shims, or nothing: a shim without its library cannot be imported."""

    def build_extensions(self) -> None:
        try:
            super().build_extensions()
        except (BaseError, CCompilerError, OSError) as failure:
            if COMPILE_MODE == "1":
                raise
            self.warn(f"{failure}: the record codecs stay interpreted")
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []
            remove_old_builds()

    def copy_extensions_to_source(self) -> None:
        """Removes libraries of earlier builds, which may have other names, before the new ones are copied."""
        remove_old_builds()
        super().copy_extensions_to_source()


def extensions() -> list[Extension]:
    """The library and its shims; an empty list where mypyc cannot make them."""
    if COMPILE_MODE == "0":
        remove_old_builds()
        return []
    try:
        from mypyc.build import mypycify

        extensions: list[Extension] = mypycify([*COMPILED, "--explicit-package-bases"], group_name=LIBRARY)
    except (SystemExit, Exception) as failure:  # mypyc raises SystemExit for errors in the source
        if COMPILE_MODE == "1":
            raise
        print(f"warning: mypyc: {failure!r}: the record codecs stay interpreted")
        remove_old_builds()
        return []
    for extension in extensions:
        # a warning of an unknown compiler must not fail the build; the loops count on int64 arithmetic that wraps
        extension.extra_compile_args = [flag for flag in extension.extra_compile_args if flag != "-Werror"]
        if os.name == "posix":
            extension.extra_compile_args.append("-fwrapv")
    extensions[0].sources.append(write_source_hash())
    return extensions


def remove_old_builds() -> None:
    """Remove compiled files from the source tree: Python would import them instead of the sources."""
    for name in COMPILED:
        folder, stem = Path(name).parent, Path(name).stem
        for suffix in ("so", "pyd"):
            for old in (*folder.glob(f"{stem}.*{suffix}"), *folder.glob(f"*__mypyc.*{suffix}")):
                old.unlink(missing_ok=True)


def write_source_hash() -> str:
    """Write a C file with the hash of the sources; returns its path. A test compares it to find a stale library."""
    source = b"".join(Path(name).read_bytes() for name in COMPILED)
    path = Path("build", "rota_source.c")
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'const char rota_source[] = "rota-source-sha256:{sha256(source).hexdigest()}";\n')
    return str(path)


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildAllOrNone})
