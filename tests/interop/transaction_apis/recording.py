"""Apache Kafka's side of the conversation about transactions, kept, so that it can be compared where no Java is.

    python -m tests.interop.transaction_apis.recording HOST:PORT

writes it anew from a running Kafka (`python -m tools.peer start`). Two conversations must give the same.
"""

from __future__ import annotations

import sys

from tests.interop.recorded_scenario import DATA, read, write
from tests.interop.transaction_apis.scenario import run_scenario
from tests.interop.transaction_apis.scenario_client import Line

RECORDED = DATA / "kafka-4.3.1-transaction-apis.jsonl.gz"


def recorded() -> list[Line]:
    return read(RECORDED)


if __name__ == "__main__":
    write(RECORDED, run_scenario, sys.argv[1])
