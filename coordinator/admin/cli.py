"""The command `rota`. A plain `rota serve` takes the short way: no command-line library before the first answer."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command that the process was given."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"]:
        gc.disable()  # until the broker has settled: imports make little litter and many objects
        from rota.coordinator.admin.options import quick

        options = quick(arguments[1:])
        if options is not None:
            from rota.coordinator.admin.serve import run

            sys.exit(run(options))
    from rota.coordinator.admin.commands import app

    app(prog_name="rota")
