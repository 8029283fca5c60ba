"""The command `rota`.

Laws
    A `rota serve` with plain options imports no command line: rota.cli is imported by its name, for everything else. It
    uses the client, which the broker's code does not import.
    Standard streams that are closed at the start are /dev/null, for this process and those that it starts: files and
    sockets must not get their numbers, with which libuv aborts a stop, and a command does what it was asked to do.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

# Imports make many objects and little garbage, the classes that dataclasses replace: with the default of 700 the
# collector would traverse the objects again and again, without it an idle broker would take 0.7 MB more.
START_OBJECTS = 20_000


def main() -> None:
    """Run the command of the process's arguments."""
    arguments = sys.argv[1:]
    _open_standard_streams()
    if arguments[:1] == ["serve"]:
        gc.set_threshold(START_OBJECTS)  # until configure_collector
        from rota.coordinator.admin.options import parse_plain

        options = parse_plain(arguments[1:])
        if options is not None:
            from rota.coordinator.admin.serve import run

            sys.exit(run(options))
    sys.exit(import_module("rota.cli.main").run(arguments))


def _open_standard_streams() -> None:
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free, which is this one
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115  # for the process's life
