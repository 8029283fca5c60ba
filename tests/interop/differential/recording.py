"""Apache Kafka's answers, kept: one gzip file of JSON lines for each seed.

    python -m tests.interop.differential.recording HOST:PORT SEED…

writes them anew from a running Kafka. Two runs of one seed must give the same bytes; this checks it.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.interop.differential.run import Line, Run

FOLDER = Path(__file__).parents[2] / "data" / "differential"
REQUESTS = 3000
RECORDED_SEEDS = (1,)


def path(seed: int) -> Path:
    return FOLDER / f"kafka-4.3.1-seed-{seed}.jsonl.gz"


def recorded(seed: int) -> Iterator[Line]:
    """The lines of a recorded run."""
    with gzip.open(path(seed), "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def transcript(bootstrap: str, seed: int, requests: int = REQUESTS) -> Iterator[Line]:
    """The lines of a run that happens now, as they will read when recorded."""
    run = Run(bootstrap, seed)
    try:
        for line in run.lines(requests):
            yield json.loads(json.dumps(line))
    finally:
        run.close()


def record(bootstrap: str, seed: int) -> None:
    once, again = list(transcript(bootstrap, seed)), list(transcript(bootstrap, seed))
    for first, second in zip(once, again, strict=True):
        assert first == second, f"seed {seed} did not give the same answers twice:\n{first}\n{second}"
    text = "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in once)
    FOLDER.mkdir(parents=True, exist_ok=True)
    path(seed).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    for wanted in sys.argv[2:]:
        record(sys.argv[1], int(wanted))
