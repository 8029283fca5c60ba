"""docs/TESTING.md: its Python examples run under pytest, its helpers run with Java, Node and Go."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.interop.java_kit import needs_java
from tests.soak import soak_only
from tools.peer.jars import QUICK, lib

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "TESTING.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ROTA = str(Path(sys.executable).with_name("rota"))
ENVIRONMENT = {**os.environ, "ROTA": ROTA}
PROGRAM_S_MAX = 120
JAVAC = "javac", *(f"-J{option}" for option in QUICK)


def blocks(kind: str) -> list[str]:
    return [text for name, text in BLOCKS if name == kind]


def run(folder: Path, *command: str, **variables: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**ENVIRONMENT, **variables},
        capture_output=True,
        text=True,
        timeout=PROGRAM_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


def test_the_python_examples_pass(tmp_path: Path) -> None:
    examples = blocks("python")
    for number, text in enumerate(examples):
        (tmp_path / f"test_example_{number}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    options = ["-q", "-p", "rota.testing.plugin", "-p", "no:xdist", "-p", "no:cacheprovider"]
    printed = run(tmp_path, sys.executable, "-m", "pytest", *options)
    assert f"{sum(text.count('def test_') for text in examples)} passed" in printed


def test_every_bug_of_the_gallery_is_in_the_table() -> None:
    files = sorted(path.name for path in (ROOT / "tests" / "gallery").glob("test_*.py"))
    assert re.findall(r"^\| .*\[(test_\w+\.py)\]", PAGE, re.MULTILINE) == files
    assert len(files) >= 10


def test_the_commands_over_http_are_those_of_the_page(tmp_path: Path) -> None:
    server = subprocess.Popen(
        [ROTA, "test-server", "--json", "--for", "60s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with server:
        assert server.stdout is not None
        assert server.stdin is not None
        line = server.stdout.readline()
        control = re.search(r'"control": "([^"]+)"', line)
        assert control is not None
        commands = [shlex.split(line) for text in blocks("sh") for line in text.splitlines() if line.startswith("curl")]
        assert len(commands) == 3
        for *words, _ in commands:
            assert '"result"' in run(tmp_path, *words, "-s", control[1])
        server.stdin.close()
        assert server.wait(PROGRAM_S_MAX) == 0


CLIENT_PROGRAM = """
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Main {
    public static void main(String[] arguments) throws Exception {
        try (RotaBroker broker = RotaBroker.start("--for", "60s")) {
            broker.command("{\\"command\\": \\"create_topic\\", \\"name\\": \\"t\\"}");
            Properties settings = new Properties();
            settings.put("bootstrap.servers", broker.bootstrapServers());
            try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
                System.out.println("offset " + producer.send(new ProducerRecord<>("t", "a")).get().offset());
            }
            System.out.println(broker.command("{\\"command\\": \\"advance\\", \\"ms\\": 60000}"));
        }
    }
}
"""


class TestJava:
    pytestmark = needs_java

    def test_the_helper_starts_a_broker_for_kafkas_own_client(self, tmp_path: Path) -> None:
        (tmp_path / "RotaBroker.java").write_text(blocks("java")[0])
        (tmp_path / "Main.java").write_text(CLIENT_PROGRAM)
        jars = f"{lib()}/*"
        run(tmp_path, *JAVAC, "-cp", jars, "RotaBroker.java", "Main.java")
        printed = run(tmp_path, "java", *QUICK, "-cp", f"{jars}:.", "Main")
        assert printed.splitlines() == ["offset 0", '{"result": null}']


@needs("javac")
def test_the_java_helper_needs_nothing_but_the_jdk(tmp_path: Path) -> None:
    (tmp_path / "RotaBroker.java").write_text(blocks("java")[0])
    (tmp_path / "Main.java").write_text(
        """
        public final class Main {
            public static void main(String[] arguments) throws Exception {
                try (RotaBroker broker = RotaBroker.start("--for", "60s")) {
                    System.out.println(broker.command("{\\"command\\": \\"clear_faults\\"}"));
                }
            }
        }
        """
    )
    run(tmp_path, *JAVAC, "RotaBroker.java", "Main.java")
    assert run(tmp_path, "java", *QUICK, "-cp", ".", "Main") == '{"result": null}\n'


@needs("node")
def test_the_javascript_helper(tmp_path: Path) -> None:
    (tmp_path / "rota.mjs").write_text(blocks("js")[0])
    (tmp_path / "main.mjs").write_text(
        """
        import { startRota } from "./rota.mjs";
        const broker = await startRota("--for", "60s");
        console.log(broker.bootstrapServers === (await broker.command("info")).bootstrap_servers);
        await broker.command("fly").catch((error) => console.log(error.message.slice(0, 15)));
        await broker.close();
        """
    )
    assert run(tmp_path, "node", "main.mjs") == "true\nunknown command\n"


@soak_only
@needs("go")
def test_the_go_helper(tmp_path: Path) -> None:
    (tmp_path / "rota").mkdir()
    (tmp_path / "rota" / "rota.go").write_text(blocks("go")[0])
    (tmp_path / "go.mod").write_text("module example\n\ngo 1.21\n")
    (tmp_path / "main.go").write_text(
        """package main

import (
	"fmt"

	"example/rota"
)

func main() {
	broker, err := rota.Start("--for", "60s")
	if err != nil {
		panic(err)
	}
	info, err := broker.Command(map[string]any{"command": "info"})
	fmt.Println(info.(map[string]any)["bootstrap_servers"] == broker.BootstrapServers, err)
	_, err = broker.Command(map[string]any{"command": "fly"})
	fmt.Println(err != nil, broker.Close())
}
"""
    )
    assert run(tmp_path, "go", "run", ".", GOFLAGS="-mod=mod") == "true <nil>\ntrue <nil>\n"
