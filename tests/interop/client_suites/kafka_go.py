"""kafka-go's tests (Go) against one broker: its client's, its codecs' and those of SASL."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.interop.client_suites.kit import Unavailable, fetch, home, settle
from tests.interop.client_suites.left_out import KAFKA_GO, KAFKA_GO_SCENARIOS
from tests.interop.client_suites.sarama import run_go_tests
from tools.peer.secure import PASSWORD, USER

VERSION = "v0.4.50"
MODULE = f"github.com/segmentio/kafka-go@{VERSION}"
# folder -> Go packages of its tests
PACKAGES = {
    ".": ("kafka", "kafka_test"),
    "compress": ("compress_test",),
    "topics": ("topics",),
    "sasl": ("sasl_test",),
}
# its broker is localhost:9092, and localhost:9093 for SASL: both come from the environment
SETTINGS = """package {package}

import (
	"os"
	"strconv"
	"strings"
)

var rotaBroker = os.Getenv("ROTA_BROKER")
var rotaSasl = os.Getenv("ROTA_SASL")
var rotaPort, _ = strconv.Atoi(rotaBroker[strings.LastIndex(rotaBroker, ":")+1:])
"""
REPLACED = (
    (r'"(?:localhost|127\.0\.0\.1):9092"', "rotaBroker"),
    (r'"(?:localhost|127\.0\.0\.1):9093"', "rotaSasl"),
    (r'TCP\("localhost"\)', "TCP(rotaBroker)"),
    (r'(?<=Host: "localhost", Port: )9092', "rotaPort"),
    (r"(?<=Port != )9092", "rotaPort"),
    (r"const broker = rotaBroker", "var broker = rotaBroker"),
    (r"const \((?=\s+(?:tcp +=.*\s+kafka|saslTestConnect) += rota)", "var ("),
    (rf"(?<=func )({'|'.join(KAFKA_GO_SCENARIOS)})\((t .*)\) {{", r'\1(\2) {\n\tt.Skip("left out")'),
    (r'"admin(?:plain|scram(?:256|512)?)"', f'"{USER}"'),
    (r'"admin-secret[-0-9]*"', f'"{PASSWORD}"'),
)


def built() -> Path:
    """Return a folder with the programs of PACKAGES and their source. Raises Unavailable without Go or network."""
    if shutil.which("go") is None:
        raise Unavailable("Go is not installed")
    folder = home() / f"kafka-go-{VERSION}-sasl"
    if not folder.exists():
        part = home() / f"kafka-go-part-{os.getpid()}"
        part.mkdir(parents=True, exist_ok=True)
        (part / "go.mod").write_text("module client_suites\n\ngo 1.24\n")
        module = json.loads(fetch(["go", "mod", "download", "-json", MODULE], part, GOFLAGS="-mod=mod"))
        source = Path(shutil.copytree(module["Dir"], part / "source"))
        subprocess.run(["chmod", "-R", "u+w", str(source)], check=True)
        for package, go_packages in PACKAGES.items():
            _adapt(source / package, go_packages)
            fetch(["go", "test", "-c", "-o", "package.test", "."], source / package, GOFLAGS="-mod=mod")
        settle(part, folder)
    return folder


def _adapt(package: Path, go_packages: Sequence[str]) -> None:
    """Replace its fixed addresses and users."""
    for go_package in go_packages:
        settings = SETTINGS.replace("{package}", go_package)
        (package / f"rota_{go_package.removesuffix('_test')}_{len(go_package)}_test.go").write_text(settings)
    for path in package.glob("*_test.go"):
        text = path.read_text()
        if path.name != "address_test.go":  # it compares addresses as texts
            for old, new in REPLACED:
                text = re.sub(old, new, text)
        path.write_text(text)


def run(bootstrap: str, sasl: str, folder: Path, only: Sequence[str] = ()) -> dict[str, str]:
    """Run all tests but KAFKA_GO's, or those of `only`; return "passed", "skipped: " or "failed: " of each.

    `sasl` is the address of a SASL_PLAINTEXT listener of the broker, which has the user USER.
    """
    chosen = f"^({'|'.join(name.partition('/')[0] for name in only)})$" if only else "^Test"
    given = {"ROTA_BROKER": bootstrap, "ROTA_SASL": sasl, "KAFKA_VERSION": "4.0.0"}
    found = {}
    for package in PACKAGES:
        source = folder / "source" / package
        found |= run_go_tests(source / "package.test", source, chosen, KAFKA_GO, given, source / "output.txt")
    return found
