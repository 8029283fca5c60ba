"""Child processes of the demo: their output becomes state."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from rota.demo.processes import Broker, Member

PRINTS = """
import json, time
print(json.dumps({"kind": "assigned", "partitions": [0, 2]}), flush=True)
print(json.dumps({"kind": "read", "offsets": {"0": [0, 9], "2": [5, 5]}}), flush=True)
time.sleep(60)
"""


def test_a_member_has_the_partitions_and_offsets_that_its_process_printed() -> None:
    process = subprocess.Popen([sys.executable, "-c", PRINTS], stdout=subprocess.PIPE, text=True)
    member = Member("rota", process)
    while member.records_read < 11:
        assert process.poll() is None
    assert member.partitions == [0, 2]
    assert member.ranges == [(0, 0, 9), (2, 5, 5)]
    member.stop(signal.SIGKILL, "killed")
    assert (member.state, member.partitions, member.records_read) == ("killed", [], 11)


def test_a_stopped_member_has_the_last_lines_of_its_process() -> None:
    """The output is read to its end, although the process is gone."""
    program = PRINTS.replace("time.sleep(60)", "")
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        member = Member("rota", process)
        member.stop(signal.SIGTERM, "left")
        assert member.records_read in (0, 11), "SIGTERM may arrive before the first line"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    process.wait()
    member = Member("rota", process)
    member.stop(signal.SIGTERM, "left")
    assert member.records_read == 11


def test_a_broker_starts_again_on_its_port(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    broker = Broker(tmp_path, events)
    try:
        broker.start()
        first = broker.address
        broker.stop(signal.SIGKILL)
        broker.start()
        assert broker.address == first
        assert not first.endswith(":0")
    finally:
        broker.stop()
    assert any(event.get("event") == "listening" for event in events)
