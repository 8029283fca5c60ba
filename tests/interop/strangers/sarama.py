"""Sarama's functional tests (Go), which expect five brokers behind a fault proxy: here five proxies of one broker."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.interop.kit import until
from tests.interop.strangers.kit import SUITE_S_MAX, Unavailable, fetch, home, settle
from tests.interop.strangers.left_out import SARAMA

MODULE = "github.com/IBM/sarama@v1.61.1"
PROXY = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0"
PROXIES = 5
# its ports are fixed; so that runs do not meet, they come from the environment
PORTS = """package sarama

import (
	"os"
	"strconv"
)

func proxyPortBase() int {
	base, _ := strconv.Atoi(os.Getenv("ROTA_PROXY_PORT_BASE"))
	return base
}
"""


def built() -> Path:
    """A folder with `sarama.test` and `server`, the proxy. Raises Unavailable without Go or network."""
    if shutil.which("go") is None:
        raise Unavailable("Go is not installed")
    folder = home() / "sarama-1.61.1"
    if not (folder / "sarama.test").exists():
        part = home() / f"sarama-part-{os.getpid()}"
        fetch(["go", "install", PROXY], part, GOBIN=str(part))
        (part / "go.mod").write_text("module strangers\n\ngo 1.24\n")
        told = fetch(["go", "mod", "download", "-json", MODULE], part, GOFLAGS="-mod=mod")
        source = Path(shutil.copytree(json.loads(told)["Dir"], part / "source"))
        subprocess.run(["chmod", "-R", "u+w", str(source)], check=True)
        _adapt(source)
        test = ["go", "test", "-tags", "functional", "-c", "-o", str(part / "sarama.test"), "."]
        fetch(test, source, GOFLAGS="-mod=mod")
        settle(part, folder)
    return folder


def _adapt(source: Path) -> None:
    """One broker instead of several, and ports of our choice."""
    (source / "functional_ports_test.go").write_text("//go:build functional\n\n" + PORTS)
    for path in source.glob("functional*_test.go"):
        text = path.read_text().replace("ReplicationFactor: 3", "ReplicationFactor: 1")
        path.write_text(text.replace("29090+i", "proxyPortBase()+i"))


def run(bootstrap: str, folder: Path, only: Sequence[str] = ()) -> dict[str, str]:
    """Run all but SARAMA's, or `only` some; for each test "passed", "skipped: " or "failed: "."""
    chosen = f"^({'|'.join(only)})$" if only else "^TestFunc"
    with proxies(bootstrap, folder) as (control, base):
        given = {
            "METRICS_DISABLE": "true",
            "TOXIPROXY_ADDR": control,
            "KAFKA_VERSION": "4.1.0",
            "ROTA_PROXY_PORT_BASE": str(base),
        }
        limits = [f"-test.timeout={SUITE_S_MAX}s", f"-test.run={chosen}", f"-test.skip=^({'|'.join(SARAMA)})$"]
        done = subprocess.run(
            [str(folder / "sarama.test"), "-test.v", *limits],
            cwd=folder / "source",
            env={**os.environ, **given},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=SUITE_S_MAX + 30,
        )
    (folder / "output.txt").write_text(done.stdout)
    return outcomes(done.stdout)


def outcomes(output: str) -> dict[str, str]:
    """The outcome of each test in Go's output; a panic counts as a test that failed."""
    words = {"PASS": "passed", "SKIP": "skipped: ", "FAIL": "failed: "}
    found = {name: words[word] for word, name in re.findall(r"^\s*--- (\w+): (\S+)", output, re.MULTILINE)}
    panic = re.search(r"^panic: .*", output, re.MULTILINE)
    return {**found, **({"panic": f"failed: {panic[0]}"} if panic else {})}


@contextmanager
def proxies(bootstrap: str, folder: Path) -> Iterator[tuple[str, int]]:
    """(address of the proxy's own API, port before the first proxy) with five proxies of the broker."""
    base = _free_ports()
    process = subprocess.Popen(
        [folder / "server", "-host", "127.0.0.1", "-port", str(base)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    control = f"http://127.0.0.1:{base}"
    try:
        until(lambda: _reachable(base), "the proxy")
        for number in range(1, PROXIES + 1):
            wanted = {"name": f"kafka{number}", "listen": f"127.0.0.1:{base + number}", "upstream": bootstrap}
            urllib.request.urlopen(f"{control}/proxies", json.dumps(wanted).encode(), timeout=10).close()
        yield control, base
    finally:
        process.terminate()
        process.wait()


def _reachable(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_ports() -> int:
    """The first of six ports in a row that nobody listens on."""
    for base in range(21_000 + os.getpid() % 5_000, 32_000, PROXIES + 1):
        if not any(_reachable(base + number) for number in range(PROXIES + 1)):
            return base
    raise Unavailable("no six free ports in a row")
