"""Paths and URLs, with the file systems that have them.

Laws
    A URL is the place that Hadoop has for it; one that pyarrow does not know is refused, never a local folder.
    No message has the secret of a URL.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Final

from pyarrow import fs

from rota.spark_connector.errors import OptionError

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?=:)")
_LOCAL: Final = re.compile(r":(?://)?(/(?!/).*)")  # after file
_PATH: Final = re.compile(r"(:(?://[^/]*)?)([^?]*)(.*)")  # after another scheme: the host, the path, the query
_SECRET: Final = re.compile("//[^/@:]*:[^/@]*@")  # a name and its secret in a URL
_ARROW_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}  # Hadoop's names of what pyarrow calls s3
_REACHED: Final = "a place that pyarrow reaches from here; for hdfs set JAVA_HOME, HADOOP_HOME and CLASSPATH"
SUPPORTED: Final = "a local path, or a URL of file, s3, s3a, gs, abfs, abfss or hdfs, as in s3a://bucket/folder"


def sync_paths(paths: Iterable[str]) -> None:
    """Return when these files and folders are on the disk. Raises OSError."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def no_sync(paths: Iterable[str]) -> None:
    """For a store that answers when a change is durable."""


def sync_of(files: fs.FileSystem) -> Callable[[Iterable[str]], None]:
    """How changes of this file system are made durable."""
    return sync_paths if isinstance(files, fs.LocalFileSystem) else no_sync


def file_system(location: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URL, and the path in it, where Spark has it, too: Hadoop's URLs have no escapes.
    Raises OptionError."""
    scheme = _SCHEME.match(location)
    if scheme is None:
        return fs.LocalFileSystem(), location.rstrip("/")
    name, rest = scheme[0], location[scheme.end() :]
    if name == "file" and (local := _LOCAL.fullmatch(rest)):
        return fs.LocalFileSystem(), local[1].rstrip("/")
    uri = _ARROW_SCHEMES.get(name, name) + _PATH.sub(_escaped, rest, count=1)
    try:
        found, path = fs.FileSystem.from_uri(uri)
    except (ValueError, OSError) as error:
        shown, reason = (_SECRET.sub("//...@", text) for text in (location, str(error).partition("\n")[0]))
        expected = f"{SUPPORTED} ({reason})" if isinstance(error, ValueError) else f"{_REACHED} ({reason})"
        raise OptionError("location", shown, expected) from None
    return found, path.rstrip("/")


def _escaped(parts: re.Match[str]) -> str:
    """The rest of a URL for pyarrow, which decodes the path."""
    return parts[1] + parts[2].replace("%", "%25").replace(" ", "%20") + parts[3]


def has_files(location: str) -> bool:
    """Whether a folder exists and is not empty."""
    files, path = file_system(location)
    return bool(files.get_file_info(fs.FileSelector(path, allow_not_found=True)))


def read_text(location: str) -> str:
    """The text of a small file; "": there is none."""
    files, path = file_system(location)
    if files.get_file_info(path).type != fs.FileType.File:
        return ""
    with files.open_input_stream(path) as file:
        return str(file.read().decode(errors="replace"))


def is_url(location: str) -> bool:
    """Whether a location has a scheme."""
    return _SCHEME.match(location) is not None
