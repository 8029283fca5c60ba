"""Apache Kafka's side of the conversation about configs, kept, so that it can be compared where no Java is.

    python -m tests.interop.config_apis.recording HOST:PORT

writes it anew from a running Kafka (`process.roles=broker,controller`, node 0). Two conversations must give the same.
"""

from __future__ import annotations

import sys

from tests.interop.config_apis.scenario import Line, run_scenario
from tests.interop.recorded_scenario import DATA, read, write

RECORDED = DATA / "kafka-4.3.1-config-apis.jsonl.gz"


def recorded() -> list[Line]:
    return read(RECORDED)


if __name__ == "__main__":
    write(RECORDED, run_scenario, sys.argv[1])
