"""kafkajs (Node) and franz-go (Go) on Rota's listeners: TLS, mTLS, SCRAM and bearer tokens, a process for each.

They come by package name from npm and Go's proxy, once. franz-go is compiled with ROTA_TEST_SUITES=all
(`make interop`); a program that has been compiled before runs without it, too.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interop.client_suites.kit import Unavailable, fetch, home, settle
from tests.interop.kit import unique
from tests.interop.security.rota_broker import SecureRota
from tools.peer.secure import PASSWORD, USER, unsecured_token

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(900),
]

KAFKAJS = "kafkajs@2.2.4"
FRANZ_GO = "v1.22.2"
PROGRAMS = Path(__file__).parents[1]
RUN_S_MAX = 300
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureRota]:
    with SecureRota(tmp_path_factory.mktemp("secure")) as running:
        yield running


def cases(broker: SecureRota) -> list[dict[str, Any]]:
    """Each way in, and two that are refused."""
    tls = {"ca": str(broker.ca)}
    own = {"certificate": str(broker.client.certificate), "key": str(broker.client.key)}
    found: list[dict[str, Any]] = [
        {"name": "SSL", "address": broker.address("SSL"), **tls},
        {"name": "MTLS", "address": broker.address("MTLS"), **tls, **own},
        {"name": "wrong-MTLS", "address": broker.address("MTLS"), **tls},
        {"name": "OAUTHBEARER", "address": broker.address("OAUTH"), "token": unsecured_token(USER, 3_600)},
    ]
    for mechanism in SCRAM:
        login = {**tls, "address": broker.address("SASL_SSL"), "mechanism": mechanism, "username": USER}
        found.append({"name": mechanism, "password": PASSWORD, **login})
        found.append({"name": f"wrong-{mechanism}", "password": "planted-wrong", **login})
    found[3]["mechanism"] = "OAUTHBEARER"
    for each in found:
        each.update(topic=unique("secure"), retries=0 if each["name"].startswith("wrong") else 10)
    return found


def check(printed: str, refusal: str) -> None:
    """All ways are "ok", and what is refused has its reason and no secret."""
    results = dict(line.split(" ", 1) for line in printed.splitlines())
    refused = {name: text for name, text in results.items() if name.startswith("wrong")}
    assert {name: text for name, text in results.items() if name not in refused} == dict.fromkeys(
        ("SSL", "MTLS", "OAUTHBEARER", *SCRAM), "ok"
    )
    assert set(refused) == {f"wrong-{name}" for name in ("MTLS", *SCRAM)}
    assert all(refusal in refused[f"wrong-{name}"] for name in SCRAM), refused
    assert "certificate" in refused["wrong-MTLS"].lower()
    assert "planted" not in printed


async def run(command: list[str], broker: SecureRota, folder: Path, **environment: str) -> str:
    file = folder / "cases.json"
    file.write_text(json.dumps(cases(broker)))
    done = await asyncio.to_thread(
        subprocess.run, [*command, str(file)], env={**os.environ, **environment}, capture_output=True, text=True,
        check=False, timeout=RUN_S_MAX,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def kafkajs() -> Path:
    """A folder with `node_modules`. Raises Unavailable without Node, npm or network."""
    if shutil.which("npm") is None:
        raise Unavailable("npm is not installed")
    folder = home() / KAFKAJS.replace("@", "-")
    if not (folder / "node_modules" / "kafkajs").exists():
        part = home() / f"kafkajs-part-{os.getpid()}"
        fetch(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(part), KAFKAJS], part)
        settle(part, folder)
    return folder


def franz_go() -> Path:
    """The program of go/secure.go. Raises Unavailable without Go or network."""
    if shutil.which("go") is None:
        raise Unavailable("Go is not installed")
    folder = home() / f"franz-go-secure-{FRANZ_GO}"
    if not (folder / "secure").exists():
        if os.environ.get("ROTA_TEST_SUITES") != "all":
            raise Unavailable("it is not compiled, and ROTA_TEST_SUITES=all is not set")
        part = home() / f"franz-go-secure-part-{os.getpid()}"
        part.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROGRAMS / "go" / "secure.go", part)
        (part / "go.mod").write_text(
            f"module client_suites\n\ngo 1.24\n\nrequire github.com/twmb/franz-go {FRANZ_GO}\n"
        )
        fetch(["go", "build", "-o", str(part / "secure"), "."], part, GOFLAGS="-mod=mod")
        settle(part, folder)
    return folder / "secure"


async def test_kafkajs(broker: SecureRota, tmp_path: Path) -> None:
    try:
        folder = kafkajs()
    except Unavailable as why:
        pytest.skip(str(why))
    program = str(PROGRAMS / "node" / "secure.js")
    printed = await run(["node", program], broker, tmp_path, NODE_PATH=str(folder / "node_modules"))
    check(printed, "authentication failed")


async def test_franz_go(broker: SecureRota, tmp_path: Path) -> None:
    try:
        program = franz_go()
    except Unavailable as why:
        pytest.skip(str(why))
    check(await run([str(program)], broker, tmp_path), "SASL_AUTHENTICATION_FAILED")
