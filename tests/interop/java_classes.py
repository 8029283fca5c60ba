"""The Java programs of the tests, compiled once: Java compiles a source file that it is given in each run."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tools.peer.jars import QUICK, home, java, lib, only_one, program

FOLDERS = Path(__file__).with_name("java"), Path(__file__).parents[1] / "client" / "java"


def command(name: str, *arguments: str) -> list[str]:
    """The command line of a class of Kafka's jars, or of a source file of the tests. Raises Missing."""
    if not name.endswith(".java"):
        return java(*QUICK, name, *arguments)
    return java(*QUICK, "-cp", f"{lib()}/*:{compiled()}", Path(name).stem, *arguments)


@cache
def compiled() -> Path:
    """The folder of the compiled programs: as `javac` writes them when a source or a jar has changed."""
    sources = sorted(source for folder in FOLDERS for source in folder.glob("*.java"))
    content = b"".join(source.read_bytes() for source in sources)
    folder = home() / "classes" / hashlib.sha256(content).hexdigest()[:16]
    with only_one("classes.lock"):
        if not folder.exists():
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            compiler = [program("javac"), "-J-XX:TieredStopAtLevel=1", "-cp", f"{lib()}/*", "-d", str(part)]
            subprocess.run([*compiler, *map(str, sources)], check=True, capture_output=True)
            part.rename(folder)
    return folder
