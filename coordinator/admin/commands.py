"""The commands of a broker, with their options: serve, check, demo, version. `rota.cli.main` runs them."""

from __future__ import annotations

import json
import os
import runpy
from argparse import ArgumentParser, Namespace

from rota.transport.standard_streams import print_on_stderr

DEFAULT_ADDRESS = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE = "ROTA_BOOTSTRAP_SERVER"  # as of the commands that talk to a cluster


def add_arguments(name: str, parser: ArgumentParser) -> None:
    """Declare the options of a command."""
    _DECLARED[name](parser)


def add_serve(parser: ArgumentParser) -> None:
    """Declare `rota serve`; the options have the names of the fields of ServeOptions."""
    parser.description = (
        "Run a broker until SIGTERM or Ctrl-C; a second signal ends it at once. Only this machine can reach it, "
        "unless --listen or the property listeners names another interface. There it needs TLS, "
        "with authentication (SASL_SSL) or without, or rota.allow.plaintext.beyond.loopback=true."
    )
    add = parser.add_argument
    add("--data", metavar="DIR", help="folder of the logs; unset: rota-data")
    add("--memory", action="store_true", help="keep everything in memory, nothing on disk")
    add("--environment", action="store_true", help="read variables KAFKA_NODE_ID, …")
    add("--config", metavar="FILE", help="properties in Kafka's form and with Kafka's names")
    add("--listen", metavar="HOST:PORT", help="where to listen; port 0 is any free one; unset: 127.0.0.1:9092")
    add("--set", dest="settings", metavar="NAME=VALUE", action="append", default=[], help="one property; repeatable")
    add("--preset", help="dev: groups form at once. durable: every acknowledged batch is on the disk")
    add("--brokers", type=int, metavar="N", help="a cluster of N broker processes here")
    add("--store", metavar="ADDRESS", help="where --brokers serves the metadata")
    add("--ready-fd", type=int, metavar="N", help="write HOST:PORT to this file descriptor when ready")
    add("--log-format", default="auto", help="auto, human or json; auto is human on a terminal")
    add("--log-level", default="info", help="debug, info, warning or error")
    parser.set_defaults(run=run_serve)


def add_check(parser: ArgumentParser) -> None:
    """Declare `rota check`."""
    parser.description = "Print whether a broker answers there; the exit code is 0 when it does, else 1."
    unset = f"unset: one of {BOOTSTRAP_VARIABLE}, or {DEFAULT_ADDRESS}"
    parser.add_argument("address", metavar="HOST:PORT", nargs="?", help=unset)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run_check)


def add_demo(parser: ArgumentParser) -> None:
    """Declare `rota demo`."""
    parser.description = (
        "Show a broker and a consumer group at work: members join, one crashes, the broker is killed and comes back. "
        "Takes 15 seconds, a free port and a temporary folder. Uses the client libraries that are installed."
    )
    parser.set_defaults(run=lambda _: run_demo())


def add_version(parser: ArgumentParser) -> None:
    """Declare `rota version`."""
    parser.description = "Print the version, whether the codecs are compiled, and which event loop the broker uses."
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=lambda options: run_version(as_json=options.json))


def run_serve(options: Namespace) -> int:
    """Serve until a stop signal; returns the exit code."""
    from rota.coordinator.admin.options import ServeOptions
    from rota.coordinator.admin.serve import run

    given = {name: getattr(options, name) for name in ServeOptions.__slots__}
    return run(ServeOptions(**given | {"settings": tuple(options.settings)}))


def _run_check(options: Namespace) -> int:
    addresses = options.address or os.environ.get(BOOTSTRAP_VARIABLE) or DEFAULT_ADDRESS
    return run_check(*addresses.split(","), as_json=options.json)


def run_check(*addresses: str, as_json: bool = False) -> int:
    """Print which of the addresses answers first, in their order, or the failures on standard error; returns the exit
    code."""
    from rota.coordinator.admin.check import NotHealthy, check

    failures = []
    for address in map(str.strip, addresses):
        try:
            apis = check(address)
        except NotHealthy as failure:
            failures.append(str(failure))
            continue
        found = json.dumps({"address": address, "apis": apis})
        print(found if as_json else f"a broker answers at {address}, with {apis} APIs")
        return 0
    message = "; ".join(failures)
    error = {"error": {"message": message, "codes": [], "exit_code": 1}}  # as the other commands print it
    print_on_stderr(json.dumps(error) if as_json else f"rota: {message}")
    return 1


def run_demo() -> int:
    """Run the package `rota.demo`, by name: it uses the client, which the broker's code does not import."""
    runpy.run_module("rota.demo", run_name="__main__")
    return 0


def run_version(*, as_json: bool = False) -> int:
    """Print the line of version.py, or its parts as JSON."""
    from rota.coordinator.admin.version import version_document, version_line

    if as_json:
        print(json.dumps(version_document()))
    else:
        print(version_line())
    return 0


_DECLARED = {"serve": add_serve, "check": add_check, "demo": add_demo, "version": add_version}
