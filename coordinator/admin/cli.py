"""The command `rota`.

Laws
    A `rota serve` with plain options imports no command line: rota.cli is imported by its name, for everything else. It
    uses the client, which the broker's code does not import.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module

from rota.transport.standard_streams import EXIT_INTERRUPTED, open_standard_streams

# Imports make many objects and little garbage, the classes that dataclasses replace: with the default of 700 the
# collector would traverse the objects again and again, without it an idle broker would take 0.7 MB more.
START_OBJECTS = 20_000


def main() -> None:
    """Run the command of the process's arguments. Ctrl-C before the command handles it ends it silently, too (CL3)."""
    try:
        sys.exit(_run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def _run(arguments: list[str]) -> int:
    open_standard_streams()
    if arguments[:1] == ["serve"]:
        gc.set_threshold(START_OBJECTS)  # until configure_collector
        from rota.coordinator.admin.options import parse_plain

        options = parse_plain(arguments[1:])
        if options is not None:
            from rota.coordinator.admin.serve import run

            return run(options)
    code: int = import_module("rota.cli.main").run(arguments)
    return code
