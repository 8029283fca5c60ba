"""Apache Kafka's side of the scenario, kept, so that it can be compared where no Java is.

    python -m tests.interop.data_apis.recording HOST:PORT

writes it anew from a running Kafka. Two runs must give the same bytes; this checks it.
"""

from __future__ import annotations

import sys

from tests.interop.data_apis.scenario import Line, run_scenario
from tests.interop.recorded_scenario import DATA, read, write

RECORDED = DATA / "kafka-4.3.1-data-apis.jsonl.gz"


def recorded() -> list[Line]:
    return read(RECORDED)


if __name__ == "__main__":
    write(RECORDED, run_scenario, sys.argv[1])
