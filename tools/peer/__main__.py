"""The command line; see `tools/peer/__init__.py`."""

from __future__ import annotations

import os
import subprocess
import sys

import tools.peer
from tools.peer.broker import start, stop
from tools.peer.jars import Missing, fetch, java


def main(arguments: list[str]) -> int:
    try:
        match arguments:
            case ["fetch"]:
                print(fetch())
            case ["start"]:
                print(start())
            case ["start", port]:
                print(start(int(port)))
            case ["stop"]:
                stop()
            case ["tool", *command] if command:
                return subprocess.run(java(*command), check=False).returncode
            case ["run", *command] if command:
                return run(command)
            case _:
                print(tools.peer.__doc__, file=sys.stderr)
                return 2
    except Missing as failure:
        print(f"peer: {failure}", file=sys.stderr)
        return 1
    return 0


def run(command: list[str]) -> int:
    """Run the command while a Kafka broker runs; returns the command's exit code."""
    address = start()
    try:
        return subprocess.run(command, env={**os.environ, "ROTA_PEER": address}, check=False).returncode
    finally:
        stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
