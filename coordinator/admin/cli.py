"""The command `rota`.

A `rota serve` with plain options imports no command-line library: that saves 80 ms of a start. Where typer is not
installed (it comes with the extra `rota[broker]`), plain.py runs the commands.
"""

from __future__ import annotations

import gc
import sys


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
    try:
        from rota.coordinator.admin.commands import app
    except ModuleNotFoundError as missing:
        if missing.name != "typer":
            raise
        from rota.coordinator.admin.plain import run_plain

        sys.exit(run_plain(arguments))
    app(prog_name="rota")
