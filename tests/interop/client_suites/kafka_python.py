"""kafka-python's integration tests, from its source package, against any broker."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

from tests.interop.client_suites.kit import SUITE_S_MAX, Unavailable, fetch, home, settle
from tests.interop.client_suites.left_out import KAFKA_PYTHON

# the source package leaves this module out; for a broker that runs already, this is all that the tests need of it
SERVICE = """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port
    def open(self): pass
    def close(self): pass
    def dump_logs(self): pass
    def wait_for(self, *args, **options): pass

class SpawnedService:
    def __init__(self, *args, **options):
        raise RuntimeError("only a broker that runs already")
"""
OTHER_SET_UPS = ("test_ssl_integration.py", "test_sasl_integration.py")


def source() -> Path:
    """The unpacked source package of the kafka-python that is installed. Raises Unavailable."""
    release = version("kafka-python")
    folder = home() / f"kafka-python-{release}-settings"
    if not folder.exists():
        part = home() / f"part-{os.getpid()}"
        # its metadata is read with the setuptools that is here: pip would install one for that
        options = ["-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
        pip = [sys.executable, "-m", "pip", "download", *options]
        fetch([*pip, "-d", str(part), f"kafka-python=={release}"], part)
        (archive,) = part.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(part, filter="data")
        (unpacked,) = (path for path in part.iterdir() if path.is_dir())
        (unpacked / "test" / "service.py").write_text(SERVICE)
        (unpacked / "test" / "__init__.py").touch()
        _adapt(unpacked / "test" / "integration" / "fixtures.py")
        settle(unpacked, folder)
        shutil.rmtree(part, ignore_errors=True)
    if not (folder / "test" / "integration").is_dir():
        raise Unavailable(f"no integration tests in {folder}")
    return folder


def _adapt(fixtures: Path) -> None:
    """Take the replication factor of its topics from the environment."""
    text = fixtures.read_text()
    fixtures.write_text(text.replace("replicas=1,", "replicas=int(os.environ['ROTA_REPLICAS']),"))


def run(bootstrap: str, folder: Path, only: Sequence[str] = (), replicas: int = 1) -> dict[str, str]:
    """Run all but KAFKA_PYTHON's, or those of `only`; return "passed", "skipped: why" or "failed: why" of each."""
    report = folder.parent / "kafka-python-report.xml"
    ignored = [f"--ignore=test/integration/{name}" for name in OTHER_SET_UPS]
    wanted = " or ".join(name.partition("[")[0] for name in only) or " and ".join(
        f"not {name}" for name in KAFKA_PYTHON
    )
    plugins = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "-p",
        "no:xdist",
        "-p",
        "no:asyncio",
        "-p",
        "no:hypothesispytest",
    ]
    limits = ["--timeout=60", "--timeout-method=signal", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, *limits, *ignored, "-k", wanted, "test/integration"]
    given = {
        "KAFKA_URI": f"kafka://{bootstrap}",
        "KAFKA_VERSION": "4.3",
        "KAFKA_ROOT": str(folder),
        "ROTA_REPLICAS": str(replicas),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with (folder.parent / "kafka-python-output.txt").open("wb") as output:
        subprocess.run(
            command, cwd=folder, env={**kept, **given}, stdout=output, stderr=output, check=False, timeout=SUITE_S_MAX
        )
    return outcomes(report)


def outcomes(report: Path) -> dict[str, str]:
    """The outcome of each test in a JUnit report."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        wrong = next((child for child in case if child.tag in ("failure", "error")), None)
        skipped = case.find("skipped")
        if wrong is not None:
            found[case.attrib["name"]] = f"failed: {wrong.attrib.get('message', '')[:300]}"
        elif skipped is not None:
            found[case.attrib["name"]] = f"skipped: {skipped.attrib.get('message', '')}"
        else:
            found[case.attrib["name"]] = "passed"
    return found
