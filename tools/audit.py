"""`make audit`: known vulnerabilities of the packages in constraints.txt, by pip-audit.

An audit that did not look at every package fails: pip-audit itself says "No known vulnerabilities found" for packages
that its database does not have, or that it could not ask for.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
VULNERABLE, NOT_AUDITED = 1, 2


def main(arguments: list[str]) -> int:
    """`arguments` are the command of pip-audit. Return the exit code."""
    command = [
        *arguments,
        "-r",
        str(CONSTRAINTS),
        "--no-deps",
        "--disable-pip",
        "--progress-spinner",
        "off",
        "-f",
        "json",
    ]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        document = json.loads(finished.stdout)
    except ValueError:
        print(f"NOT AUDITED: pip-audit has no result: {finished.stderr.strip()[-500:]}", file=sys.stderr)
        return NOT_AUDITED
    code, lines = audit_result(document)
    print("\n".join(lines), file=sys.stderr)
    return code


def audit_result(document: dict[str, Any]) -> tuple[int, list[str]]:
    """Return the exit code for pip-audit's result, and what to print."""
    packages = document["dependencies"]
    vulnerable = [
        f"VULNERABLE: {each['name']} {each['version']}: {found['id']}, fixed in {', '.join(found['fix_versions'])}"
        for each in packages
        for found in each.get("vulns", ())
    ]
    skipped = [f"NOT AUDITED: {each['name']}: {each['skip_reason']}" for each in packages if "skip_reason" in each]
    audited = len(packages) - len(skipped)
    lines = [*vulnerable, *skipped, f"{audited} of {len(packages)} packages audited, {len(vulnerable)} vulnerabilities"]
    if vulnerable:
        return VULNERABLE, lines
    return (NOT_AUDITED if skipped or not packages else 0), lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
