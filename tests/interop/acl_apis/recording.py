"""Apache Kafka's side of the conversations about ACLs, kept, so that they can be compared where no Java is.

    python -m tests.interop.acl_apis.recording HOST:PORT

writes them anew from a running Kafka (`python -m tools.peer start`). Two conversations must give the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.interop.acl_apis.grants import tell_grants
from tests.interop.acl_apis.story import Line, tell
from tests.interop.recorded_story import DATA, read, write

RECORDED = DATA / "kafka-4.3.1-acl-apis.jsonl.gz"
GRANTS = DATA / "kafka-4.3.1-acl-grants.jsonl.gz"

Place = tuple[str, str, int]  # chapter, step, version


def recorded() -> list[Line]:
    return read(RECORDED)


def recorded_grants() -> list[Line]:
    return read(GRANTS)


def place(line: Line) -> Place:
    return line["chapter"], line["step"], line["version"]


def telling(lines: Sequence[Line]) -> set[Place]:
    """Of the conversation about grants what shows something of its own.

    Answers that a chapter allows, in part at least: of the newest version, and of the last before each change. What is
    refused as in the chapter `nothing` is left out: the unit tests show that no API asks for operations that the table
    does not have, and the other conversation has most of that chapter.
    """
    answers = {place(line): line["answer"] for line in lines}
    return {
        (chapter, step, version)
        for (chapter, step, version), answer in answers.items()
        if answer not in (answers.get((chapter, step, version + 1)), answers.get(("nothing", step, version)))
        or (chapter == "nothing" and " by " in step)
    }


if __name__ == "__main__":
    write(RECORDED, tell, sys.argv[1])
    write(GRANTS, tell_grants, sys.argv[1])
