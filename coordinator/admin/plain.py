"""The commands without typer: what `rota` runs in an environment that has only the client's packages."""

from __future__ import annotations

import runpy
import sys

from rota.coordinator.admin.check import NotHealthy, check
from rota.coordinator.admin.version import version_line

DEFAULT_ADDRESS = "127.0.0.1:9092"
USAGE = """usage: rota serve [--data DIR | --memory] [--environment] [--config FILE] [--listen HOST:PORT]
                  [--set NAME=VALUE]… [--preset NAME] [--brokers N] [--ready-fd N] [--log-format FORMAT]
                  [--log-level LEVEL]
       rota check [HOST:PORT]
       rota demo
       rota version
Help for each option, and a faster event loop: pip install 'rota[broker]'"""


def run_plain(arguments: list[str]) -> int:
    """Run one command; returns the exit code. A `serve` that reaches it has invalid options."""
    match arguments:
        case ["version"]:
            print(version_line())
        case ["demo"]:
            run_demo()
        case ["check"]:
            return run_check(DEFAULT_ADDRESS)
        case ["check", address]:
            return run_check(address)
        case [] | ["--help"] | ["help"]:
            print(USAGE)
        case _:
            print(USAGE, file=sys.stderr)
            return 2
    return 0


def run_demo() -> None:
    """Run the package `rota.demo`, by name: it uses the client, which the broker's code does not import."""
    runpy.run_module("rota.demo", run_name="__main__")


def run_check(address: str) -> int:
    """Print whether a broker answers at `address`; returns the exit code."""
    try:
        apis = check(address)
    except NotHealthy as failure:
        print(f"rota: {failure}", file=sys.stderr)
        return 1
    print(f"a broker answers at {address}, with {apis} APIs")
    return 0
