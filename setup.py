"""Compiles the record codecs with mypyc where a C compiler is installed; elsewhere the same files run interpreted.

ROTA_COMPILE=0 does not compile, ROTA_COMPILE=1 raises when the compilation fails; unset, a failure is a warning.
ROTA_OPTIMIZE is the compiler's level of optimization, 0 to 3 (default 3).

With SOURCE_DATE_EPOCH, two builds of one commit with one Python, compiler and mypyc are the same bytes: the sdist and
the wheels, compiled files included. setuptools takes that time for the entries of a wheel alone: owners, modes and the
times in an sdist are those of the machine, and the commands below replace them.
"""

from __future__ import annotations

import gzip
import os
import stat
import sys
import tarfile
import zipfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist
from setuptools.errors import BaseError, CCompilerError

COMPILED_NAMES = ("fast", "consumed", "columns", "produced", "offset_columns")
COMPILED = [f"src/rota/protocol/records/{name}.py" for name in COMPILED_NAMES]
# mypyc makes one shared library, rota.protocol.records.compiled__mypyc, and for each module an extension shim of the
# module's name that loads it
LIBRARY = "rota.protocol.records.compiled"
COMPILE_MODE = os.environ.get("ROTA_COMPILE", "")
OPTIMIZATION = os.environ.get("ROTA_OPTIMIZE", "3")
METADATA_COMMANDS = {"egg_info", "dist_info"}
SOURCE_DATE_EPOCH = os.environ.get("SOURCE_DATE_EPOCH")  # seconds since 1970, as reproducible-builds.org defines it
MODE, MODE_EXECUTABLE = 0o644, 0o755


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
    """The library and its shims; an empty list where mypyc cannot make them, and for commands that write metadata."""
    if METADATA_COMMANDS & set(sys.argv[1:2]):
        return []  # pip asks for metadata twice before it builds
    if COMPILE_MODE == "0":
        remove_old_builds()
        return []
    try:
        from mypyc.build import mypycify

        extensions: list[Extension] = mypycify(
            [*COMPILED, "--explicit-package-bases"], group_name=LIBRARY, opt_level=OPTIMIZATION
        )
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
            extension.extra_compile_args += ["-fwrapv", *path_independence()]
    extensions[0].sources.append(write_source_hash())
    return extensions


def path_independence() -> list[str]:
    """Return the options that keep the folders of the build out of the compiled files' debug information."""
    if SOURCE_DATE_EPOCH is None:
        return []
    import mypyc

    folders = {os.getcwd(): "rota", str(Path(mypyc.__file__).parent): "mypyc"}
    return [f"-ffile-prefix-map={folder}={name}" for folder, name in folders.items()]


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


class ReproducibleSdist(sdist):
    """Writes entries without owner, umask and time of the build."""

    def make_archive(self, *args: Any, **kwargs: Any) -> str:
        path: str = super().make_archive(*args, **kwargs)
        if SOURCE_DATE_EPOCH is not None and path.endswith(".tar.gz"):
            normalise_sdist(Path(path), int(SOURCE_DATE_EPOCH))
        return path


class ReproducibleWheel(bdist_wheel):
    """Writes entries without the umask of the build; setuptools writes SOURCE_DATE_EPOCH as their time."""

    def run(self) -> None:
        super().run()
        for command, _, path in self.distribution.dist_files:
            if SOURCE_DATE_EPOCH is not None and command == "bdist_wheel":
                normalise_wheel(Path(path))


def normalise_sdist(path: Path, epoch: int) -> None:
    """Write the archive again: entries sorted, owner 0, modes 644 and 755, and `epoch` as the time everywhere."""
    with tarfile.open(path) as old:
        entries = [(each, old.extractfile(each) if each.isfile() else None) for each in old.getmembers()]
        content = [(each, None if file is None else file.read()) for each, file in entries]
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for entry, data in sorted(content, key=lambda each: each[0].name):
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode = MODE_EXECUTABLE if entry.isdir() or entry.mode & 0o100 else MODE
            entry.mtime, entry.pax_headers = epoch, {}
            new.addfile(entry, None if data is None else BytesIO(data))


def normalise_wheel(path: Path) -> None:
    """Write the archive again with modes 644 and 755. RECORD, which has hashes of the contents, stays true."""
    with zipfile.ZipFile(path) as old:
        content = [(each, old.read(each)) for each in old.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for entry, data in content:
            mode = MODE_EXECUTABLE if entry.external_attr >> 16 & 0o100 else MODE
            entry.external_attr = (stat.S_IFREG | mode) << 16
            new.writestr(entry, data)


COMMANDS = {"build_ext": BuildAllOrNone, "sdist": ReproducibleSdist, "bdist_wheel": ReproducibleWheel}
setup(ext_modules=extensions(), cmdclass=COMMANDS)
