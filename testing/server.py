"""`rota test-server`: brokers in memory for tests in any language, with a control port on the loopback interface.

It prints where it listens and ends with its standard input, after `--for`, or by SIGTERM. Exit codes: 0 after a stop,
2 when it cannot start.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

EXIT_CANNOT_START: Final = 2
UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
DEFAULT_S: Final = 3600.0
INPUT_BYTES: Final = 4096  # of standard input, read and ignored


def main() -> int:
    """Run the command with the arguments of the process; return the exit code."""
    parser = argparse.ArgumentParser(prog="rota test-server")
    add_arguments("test-server", parser)
    return run(parser.parse_args())


def add_arguments(name: str, parser: argparse.ArgumentParser) -> None:
    """Declare the options of `rota test-server`."""
    parser.description = (
        "Run brokers in memory for tests in any language, with a control port for faults on the loopback interface. "
        "Ends with its standard input, after --for, or by SIGTERM."
    )
    add = parser.add_argument
    add("--for", dest="seconds", type=seconds, default=DEFAULT_S, metavar="30s", help="how long at most; unset: 1h")
    add("--json", action="store_true", help='print {"bootstrap_servers": …, "control": URL}')
    add("--brokers", type=int, default=1, metavar="N", help="a cluster of N brokers")
    add("--data", metavar="DIR", help="keep the logs there instead of in memory")
    add("--set", dest="settings", metavar="NAME=VALUE", action="append", default=[], help="one property; repeatable")
    add("--seed", type=int, default=0, metavar="N", help="draws which requests a fault with a probability applies to")
    add("--log-level", default="warning", choices=("debug", "info", "warning", "error"), help="unset: warning")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the brokers; return the exit code."""
    from rota.coordinator.observe.logs import print_error, writing_by_thread

    try:
        properties = dict(_setting(text) for text in options.settings)
    except ValueError as why:
        print_error(f"rota: {why}")
        return EXIT_CANNOT_START
    with writing_by_thread("auto", options.log_level, sys.stderr):
        try:
            asyncio.run(serve(options, properties))
        except Exception as why:  # noqa: BLE001  # whatever keeps it from starting is one line for the caller
            print_error(f"rota: {type(why).__name__}: {why}")
            return EXIT_CANNOT_START
    return 0


async def serve(options: argparse.Namespace, properties: dict[str, str]) -> None:
    """Start, print one line, stop at the end of the input or of the time. Raises what the brokers raise."""
    from rota.testing.commands import Commands
    from rota.testing.control_server import ControlServer
    from rota.testing.host import Host

    stopping = asyncio.Event()
    _stop_with_input(stopping.set)
    data = None if options.data is None else Path(options.data)
    host = Host(properties, count=options.brokers, data=data, seed=options.seed)
    await host.start()
    control = ControlServer(Commands(host))
    try:
        _report(options.json, {"bootstrap_servers": host.bootstrap, "control": await control.start()})
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), options.seconds)
    finally:
        await control.stop()
        await host.stop()


def seconds(text: str) -> float:
    """Return the seconds of a duration such as 30s, 500ms, 5m or 1h. Raises ValueError."""
    parsed = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", text)
    if parsed is None:
        raise ValueError(f"{text!r} is no duration; write 30s, 500ms, 5m or 1h")
    return float(parsed[1]) * UNITS_S[parsed[2] or "s"]


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set takes NAME=VALUE, not {text!r}")
    return name, value


def _report(as_json: bool, ready: dict[str, Any]) -> None:
    line = json.dumps(ready) if as_json else f"listening on {ready['bootstrap_servers']}, control at {ready['control']}"
    print(line, flush=True)


def _stop_with_input(stop: Callable[[], None]) -> None:
    """Call `stop` at SIGTERM, SIGINT and the end of standard input, unless that is a terminal or not readable."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)

    def readable() -> None:
        if not os.read(0, INPUT_BYTES):
            loop.remove_reader(0)
            stop()

    if sys.stdin is not None and not sys.stdin.isatty():
        with suppress(OSError, ValueError):  # a regular file or /dev/null cannot be watched
            loop.add_reader(0, readable)


if __name__ == "__main__":
    sys.exit(main())
