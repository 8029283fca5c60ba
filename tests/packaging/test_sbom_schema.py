"""deploy/sbom.cdx.json is valid by CycloneDX's own schema, as their library has it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.packaging.source_tree import ROOT, fresh_environment, outside
from tests.soak import soak_only

LIBRARY = "cyclonedx-python-lib[json-validation]"
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(repr(found) if found else 0)
"""


@soak_only
def test_it_is_valid(tmp_path: Path) -> None:
    python = fresh_environment(tmp_path, LIBRARY) / "python"
    text = (ROOT / "deploy" / "sbom.cdx.json").read_text()
    for document, is_valid in ((text, True), (text.replace('"library"', '"book"'), False)):
        command = [str(python), "-c", VALIDATE]
        done = subprocess.run(command, input=document, env=outside(), capture_output=True, text=True, check=False)
        assert (done.returncode == 0) is is_valid, done.stderr
