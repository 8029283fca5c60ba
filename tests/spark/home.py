"""A SPARK_HOME whose Python modules are files: half the CPU time of the processes that Spark starts for a query.

Spark has its processes import pyspark from `python/lib/pyspark.zip`, which has no bytecode: each of them compiles what
it imports, 0.8 s. Folders with the names of the archives have the installed modules instead, with their bytecode.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.soak import SOAK
from tools.peer.jars import UNVERIFIED

# of a JVM with short jobs on two cores: it compiles quickly, does not verify Spark's classes, collects no garbage
# because classes are loaded, and starts a process without a helper process
JVM: Final = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:MetaspaceSize=256m",
    "-Djdk.lang.Process.launchMechanism=VFORK",
    *UNVERIFIED,
)
# a checkpoint's files are renamed by Hadoop's FileSystem: its FileContext starts processes for each
CHECKPOINTS: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
# small queries end before what Spark generates and compiles for them pays
INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
QUICK: Final = {} if SOAK else CHECKPOINTS | INTERPRETED


def installed(module: str) -> Path:
    """The folder of an installed package."""
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def unpacked(folder: Path) -> Path:
    """Make the home in `folder`, which does not exist; returns it."""
    spark = installed("pyspark")
    archives = spark / "python" / "lib"
    for name in ("bin", "jars", "sbin"):
        link(folder / name, spark / name)
    for archive in archives.glob("*.zip"):
        module = archive.name.partition("-")[0].removesuffix(".zip")
        link(folder / "python" / "lib" / archive.name / module, installed(module))
    return folder


def link(at: Path, target: Path) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(target)
