"""Apache Kafka's side of the conversation about configs, kept, so that it can be compared where no Java is.

    python -m tests.interop.config_apis.recording HOST:PORT

writes it anew from a running Kafka (`process.roles=broker,controller`, node 0). Two conversations must give the same.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from tests.interop.config_apis.story import Line, tell

RECORDED = Path(__file__).parents[2] / "data" / "kafka-4.3.1-config-apis.jsonl.gz"


def recorded() -> list[Line]:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def record(bootstrap: str) -> None:
    once, again = list(tell(bootstrap)), list(tell(bootstrap))
    for first, second in zip(once, again, strict=True):
        assert first == second, f"two conversations differ:\n{first}\n{second}"
    text = "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in once)
    RECORDED.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    record(sys.argv[1])
