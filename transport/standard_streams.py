"""The standard streams of a command: what becomes of it where they are closed, full, or read by nobody.

Laws
    A reader of the output that goes, as in `rota --help | head -1`, ends any command quietly. An output that cannot be
    written, as on a full or failing disk, is an error of one line, and errors that cannot be written themselves change
    no exit code.
    Standard streams that are closed at the start are /dev/null, for this process and those that it starts: files and
    sockets must not get their numbers, with which libuv aborts a stop, and a command does what it was asked to do.
    A character that the encoding of the output does not have, as that of a terminal with Latin-1, is written as Python
    escapes it (\\u2026), as Python does on standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from errno import EDQUOT, EFBIG, ENOSPC
from io import TextIOWrapper
from typing import Final, TextIO

EXIT_NOT_WRITTEN: Final = 1
EXIT_INTERRUPTED: Final = 130  # as a shell shows a program that SIGINT has ended
EXIT_BROKEN_PIPE: Final = 141  # as a shell shows a program that SIGPIPE has ended
_FULL: Final = (ENOSPC, EDQUOT, EFBIG)


def open_standard_streams() -> None:
    """Open those that are closed, and let the output escape what its encoding does not have."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free, which is this one
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115  # for the process's life
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def exit_code(command: Callable[[], int], report: Callable[[str], object]) -> int:
    """Run a command to its end; `report` gets the line of an output that cannot be written. Raises what the command
    raises: SystemExit where argparse does, for help and for an error."""
    try:
        try:
            code = command()
        except SystemExit:
            sys.stdout.flush()
            raise
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        discard(sys.stdout)
        return EXIT_BROKEN_PIPE
    except OSError as failure:
        if failure.filename is not None or not (failure.errno in _FULL or _is_of_output(failure)):
            raise
        discard(sys.stdout)
        report(f"standard output: {failure.strerror}")
        return EXIT_NOT_WRITTEN
    finally:
        _flush_errors()


def _is_of_output(failure: OSError) -> bool:
    """Return whether the output has this error again: opened for reading only, on a failing disk, or a full pipe that
    another process made non-blocking."""
    try:
        sys.stdout.flush()
        os.write(sys.stdout.fileno(), b"")
    except OSError as again:
        return again.errno == failure.errno is not None
    return False


def _flush_errors() -> None:
    try:
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


def print_on_stderr(text: str) -> None:
    """Print a text for which the exit code stands where it cannot be written."""
    with suppress(OSError):
        print(text, file=sys.stderr)


def discard(stream: TextIO) -> None:
    """Point a standard stream that cannot be written at nothing: the flush at the end of the process must not fail."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)
