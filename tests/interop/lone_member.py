"""A member in its own process: python -m tests.interop.lone_member BOOTSTRAP CLIENT GROUP TOPIC SESSION_MS.

It polls until its standard input closes, or until a test kills it.
"""

from __future__ import annotations

import sys

from tests.interop.clients import CLIENTS
from tests.interop.members import Settings


def main() -> None:
    bootstrap, client, group, topic, session_ms = sys.argv[1:]
    with CLIENTS[client](bootstrap, Settings(group=group, topics=[topic], session_ms=int(session_ms))):
        sys.stdin.read()


if __name__ == "__main__":
    main()
