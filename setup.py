"""Compile the record codec with mypyc where a C compiler is there; the same file runs interpreted where not.

ROTA_COMPILE=0 leaves it interpreted, ROTA_COMPILE=1 makes a failure to compile an error; unset, it is tried.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

COMPILED = [f"src/rota/protocol/records/{name}.py" for name in ("fast", "consumed", "columns")]
LIBRARY = "rota.protocol.records.compiled"  # and __mypyc, which holds them all; each has a door of its own name
WISH = os.environ.get("ROTA_COMPILE", "")


class AllOrNone(build_ext):
    """mypyc makes a library and, for each module, a door to it: a door without its library could not be imported."""

    def build_extensions(self) -> None:
        try:
            super().build_extensions()
        except (BaseError, CCompilerError, OSError) as wrong:
            if WISH == "1":
                raise
            self.warn(f"{wrong}: the record codec stays interpreted")
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []
            forget()

    def copy_extensions_to_source(self) -> None:
        """A library by another name, which an earlier version left, must not stay beside the new one."""
        forget()
        super().copy_extensions_to_source()


def extensions() -> list[Extension]:
    if WISH == "0":
        forget()
        return []
    try:
        from mypyc.build import mypycify

        made: list[Extension] = mypycify([*COMPILED, "--explicit-package-bases"], group_name=LIBRARY)
    except (SystemExit, Exception) as wrong:  # mypyc's way to say that it cannot
        if WISH == "1":
            raise
        print(f"warning: mypyc: {wrong!r}: the record codec stays interpreted")
        forget()
        return []
    for extension in made:
        # a warning of a compiler that we have not met is no reason to fail; the loops count on int64 that wraps
        extension.extra_compile_args = [flag for flag in extension.extra_compile_args if flag != "-Werror"]
        if os.name == "posix":
            extension.extra_compile_args.append("-fwrapv")
    made[0].sources.append(mark())
    return made


def forget() -> None:
    """What an earlier build left in the source tree would go on shadowing the files."""
    for name in COMPILED:
        folder, stem = Path(name).parent, Path(name).stem
        for suffix in ("so", "pyd"):
            for old in (*folder.glob(f"{stem}.*{suffix}"), *folder.glob(f"*__mypyc.*{suffix}")):
                old.unlink(missing_ok=True)


def mark() -> str:
    """The library carries the hash of what it was made of, so that a test can tell a stale one."""
    source = b"".join(Path(name).read_bytes() for name in COMPILED)
    path = Path("build", "rota_source.c")
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'const char rota_source[] = "rota-source-sha256:{sha256(source).hexdigest()}";\n')
    return str(path)


setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNone})
