"""Apache Kafka's side of the conversations about ACLs, kept, so that they can be compared where no Java is.

    python -m tests.interop.acl_apis.recording HOST:PORT

writes them anew from a running Kafka (`python -m tools.peer start`). Two conversations must give the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.interop.acl_apis.grants import run_grants_scenario
from tests.interop.acl_apis.scenario import Line, run_scenario
from tests.interop.recorded_scenario import DATA, read, write

RECORDED = DATA / "kafka-4.3.1-acl-apis.jsonl.gz"
GRANTS = DATA / "kafka-4.3.1-acl-grants.jsonl.gz"

StepKey = tuple[str, str, int]  # chapter, step, version


def recorded() -> list[Line]:
    return read(RECORDED)


def recorded_grants() -> list[Line]:
    return read(GRANTS)


def step_key(line: Line) -> StepKey:
    return line["chapter"], line["step"], line["version"]


def distinctive_steps(lines: Sequence[Line]) -> set[StepKey]:
    """Of the conversation about grants what shows something of its own.

    Answers that a chapter allows, in part at least: of the newest version, and of the last before each change. What is
    refused as in the chapter `nothing` is left out: the unit tests show that no API asks for operations that the table
    does not have, and the other conversation has most of that chapter.
    """
    answers = {step_key(line): line["answer"] for line in lines}
    return {
        (chapter, step, version)
        for (chapter, step, version), answer in answers.items()
        if answer not in (answers.get((chapter, step, version + 1)), answers.get(("nothing", step, version)))
        or (chapter == "nothing" and " by " in step)
    }


if __name__ == "__main__":
    write(RECORDED, run_scenario, sys.argv[1])
    write(GRANTS, run_grants_scenario, sys.argv[1])
