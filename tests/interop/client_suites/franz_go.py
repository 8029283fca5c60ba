"""franz-go's tests (Go) against a cluster: its client's unit tests and those that need brokers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.interop.client_suites.kit import Unavailable, fetch, home, settle
from tests.interop.client_suites.left_out import FRANZ_GO
from tests.interop.client_suites.sarama import run_go_tests

MODULE = "github.com/twmb/franz-go@v1.22.2"
RECORDS = 20_000  # of each consume-transform-produce chain, instead of 500,000


def built() -> Path:
    """Return a folder with `kgo.test` and the source of the package. Raises Unavailable without Go or network."""
    if shutil.which("go") is None:
        raise Unavailable("Go is not installed")
    folder = home() / f"franz-go-{MODULE.rpartition('@')[2]}"
    if not (folder / "kgo.test").exists():
        part = home() / f"franz-go-part-{os.getpid()}"
        part.mkdir(parents=True, exist_ok=True)
        (part / "go.mod").write_text("module client_suites\n\ngo 1.24\n")
        module = json.loads(fetch(["go", "mod", "download", "-json", MODULE], part, GOFLAGS="-mod=mod"))
        source = Path(shutil.copytree(module["Dir"], part / "source"))
        subprocess.run(["chmod", "-R", "u+w", str(source)], check=True)
        package = source / "pkg" / "kgo"
        fetch(["go", "test", "-c", "-o", str(part / "kgo.test"), "."], package, GOFLAGS="-mod=mod")
        settle(part, folder)
    return folder


def run(bootstrap: str, folder: Path, only: Sequence[str] = ()) -> dict[str, str]:
    """Run all tests but FRANZ_GO's, or those of `only`; return "passed", "skipped: " or "failed: " of each."""
    chosen = f"^({'|'.join(name.partition('/')[0] for name in only)})$" if only else "^Test"
    given = {
        "KGO_SEEDS": bootstrap,
        "KGO_TEST_RF": "3",
        "KGO_TEST_RECORDS": str(RECORDS),
        "KGO_LOG_LEVEL": "none",
    }
    return _run(folder, chosen, given, "output.txt")


def run_scram(address: str, login: str, folder: Path) -> dict[str, str]:
    """Run the tests of SCRAM on a SASL_PLAINTEXT listener; `login` is USER:PASSWORD:256 or 512."""
    given = {"KGO_SEEDS": address, "KGO_TEST_SCRAM_SEEDS": address, "KGO_TEST_SCRAM": login}
    return _run(folder, "^TestSCRAM", given, "output-scram.txt")


def _run(folder: Path, chosen: str, given: dict[str, str], output: str) -> dict[str, str]:
    package = folder / "source" / "pkg" / "kgo"
    return run_go_tests(folder / "kgo.test", package, chosen, FRANZ_GO, given, folder / output)
