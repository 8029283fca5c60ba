"""Sarama's functional tests (Go), which expect five brokers behind a fault proxy: five proxies of one broker, or five
brokers with a proxy each.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.interop.client_suites.kit import SUITE_S_MAX, Unavailable, fetch, home, settle
from tests.interop.client_suites.left_out import SARAMA, SARAMA_CLUSTER_ONLY
from tests.interop.client_suites.proxied_cluster import ProxiedCluster, docker
from tests.interop.kit import until
from tools.ports import free_ports

MODULE = "github.com/IBM/sarama@v1.61.1"
PROXY = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0"
PROXIES = 5
CRASH = "the program"  # in the place of a test's name
# its ports are fixed, its topics have three replicas: both come from the environment
SETTINGS = """package sarama

import (
	"os"
	"strconv"
)

func numberFromEnvironment(name string) int {
	number, _ := strconv.Atoi(os.Getenv(name))
	return number
}

func proxyPortBase() int {
	return numberFromEnvironment("ROTA_PROXY_PORT_BASE")
}

func replicas() int16 {
	return int16(numberFromEnvironment("ROTA_REPLICAS"))
}
"""


def built() -> Path:
    """A folder with `sarama.test` and `server`, the proxy. Raises Unavailable without Go or network."""
    if shutil.which("go") is None:
        raise Unavailable("Go is not installed")
    folder = home() / "sarama-1.61.1-settings"
    if not (folder / "sarama.test").exists():
        part = home() / f"sarama-part-{os.getpid()}"
        fetch(["go", "install", PROXY], part, GOBIN=str(part))
        (part / "go.mod").write_text("module client_suites\n\ngo 1.24\n")
        answer = fetch(["go", "mod", "download", "-json", MODULE], part, GOFLAGS="-mod=mod")
        source = Path(shutil.copytree(json.loads(answer)["Dir"], part / "source"))
        subprocess.run(["chmod", "-R", "u+w", str(source)], check=True)
        _adapt(source)
        test = ["go", "test", "-tags", "functional", "-c", "-o", str(part / "sarama.test"), "."]
        fetch(test, source, GOFLAGS="-mod=mod")
        settle(part, folder)
    return folder


def _adapt(source: Path) -> None:
    """Replace its fixed ports and replication factor by the environment's."""
    (source / "functional_settings_test.go").write_text("//go:build functional\n\n" + SETTINGS)
    for path in source.glob("functional*_test.go"):
        text = path.read_text().replace("ReplicationFactor: 3", "ReplicationFactor: replicas()")
        path.write_text(text.replace("29090+i", "proxyPortBase()+i"))


def run(bootstrap: str, folder: Path, only: Sequence[str] = ()) -> dict[str, str]:
    """Run the tests for one broker, or those of `only`; return "passed", "skipped: " or "failed: " of each."""
    base = free_ports(PROXIES + 1)[0]
    with proxies([bootstrap] * PROXIES, folder, base):
        return _run_tests(folder, base, 1, [*SARAMA, *SARAMA_CLUSTER_ONLY], only)


def run_on_cluster(data: Path, folder: Path, only: Sequence[str] = ()) -> dict[str, str]:
    """Run all tests but SARAMA's on five brokers, or those of `only`; the brokers' files are in `data`."""
    base = free_ports(PROXIES + 1)[0]
    advertised = {broker: base + broker for broker in range(1, PROXIES + 1)}
    with (
        ProxiedCluster(data, advertised) as cluster,
        docker(cluster, data) as path,
        proxies(cluster.bootstrap.split(","), folder, base),
    ):
        return _run_tests(folder, base, 3, list(SARAMA), only, PATH=path)


def _run_tests(
    folder: Path, base: int, replicas: int, left_out: Sequence[str], only: Sequence[str], **environment: str
) -> dict[str, str]:
    chosen = f"^({'|'.join(only)})$" if only else "^TestFunc"
    given = {
        "METRICS_DISABLE": "true",
        "TOXIPROXY_ADDR": f"http://127.0.0.1:{base}",
        "KAFKA_VERSION": "4.1.0",
        "ROTA_PROXY_PORT_BASE": str(base),
        "ROTA_REPLICAS": str(replicas),
        **environment,
    }
    output = folder / f"output-{replicas}.txt"
    return run_go_tests(folder / "sarama.test", folder / "source", chosen, left_out, given, output)


def run_go_tests(
    program: Path, cwd: Path, chosen: str, left_out: Iterable[str], environment: Mapping[str, str], output: Path
) -> dict[str, str]:
    """Run a compiled test program of Go, write what it prints to `output`, and return the outcome of each test."""
    limits = [f"-test.timeout={SUITE_S_MAX}s", f"-test.run={chosen}", f"-test.skip=^({'|'.join(left_out)})$"]
    done = subprocess.run(
        [str(program), "-test.v", *limits],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SUITE_S_MAX + 30,
    )
    output.write_text(done.stdout)
    return outcomes(done.stdout)


def outcomes(output: str) -> dict[str, str]:
    """The outcome of each test in Go's output; a program that did not come to its end counts as a test that failed."""
    words = {"PASS": "passed", "SKIP": "skipped: ", "FAIL": "failed: "}
    found = {name: words[word] for word, name in re.findall(r"^\s*--- (\w+): (\S+)", output, re.MULTILINE)}
    if not re.search(r"^(?:PASS|FAIL)$", output, re.MULTILINE):
        why = re.search(r"^(?:panic|fatal error): .*", output, re.MULTILINE)
        found[CRASH] = f"failed: {why[0] if why else output[-200:]}"
    return found


@contextmanager
def proxies(upstreams: Sequence[str], folder: Path, base: int) -> Iterator[None]:
    """A proxy of each upstream on the ports after `base`; their HTTP interface is on `base`."""
    process = subprocess.Popen(
        [folder / "server", "-host", "127.0.0.1", "-port", str(base)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: _reachable(base), "the proxy")
        for number, upstream in enumerate(upstreams, 1):
            proxy = {"name": f"kafka{number}", "listen": f"127.0.0.1:{base + number}", "upstream": upstream}
            urllib.request.urlopen(f"http://127.0.0.1:{base}/proxies", json.dumps(proxy).encode(), timeout=10).close()
        yield
    finally:
        process.terminate()
        process.wait()


def _reachable(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
