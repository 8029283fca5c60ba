"""Apache Kafka's answers to a seed of requests of both protocols, kept.

    python -m tests.interop.group_protocols.recording HOST:PORT

records them anew from a running Kafka; two runs must give the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from tests.interop.group_protocols.run import Line, Run
from tests.interop.recorded_scenario import DATA, write

PATH = DATA / "kafka-4.3.1-group-protocols.jsonl.gz"
SEED, REQUESTS = 1, 3_000


def transcript(bootstrap: str, seed: int = SEED, requests: int = REQUESTS) -> Iterator[Line]:
    """The lines of a run that happens now, as they read when recorded."""
    run = Run(bootstrap, seed)
    try:
        for line in run.lines(requests):
            yield json.loads(json.dumps(line))
    finally:
        run.close()


if __name__ == "__main__":
    write(PATH, transcript, sys.argv[1])
