"""The command `rota`.

Laws
    A `rota serve` with plain options imports no command line: rota.cli is imported by its name, for everything else. It
    uses the client, which the broker's code does not import.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module


def main() -> None:
    """Run the command of the process's arguments."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"]:
        gc.disable()  # until configure_collector: imports make little garbage and many objects
        from rota.coordinator.admin.options import parse_plain

        options = parse_plain(arguments[1:])
        if options is not None:
            from rota.coordinator.admin.serve import run

            sys.exit(run(options))
    sys.exit(import_module("rota.cli.main").run(arguments))
