"""The rules that no linter knows: sizes, purity, a test file for each source file, imports by their full name."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MODULE_LINES_MAX, FUNCTION_LINES_MAX = 400, 40
PACKAGES = ("protocol", "transport", "coordinator", "client", "demo", "spark_connector", "cli", "testing")
PURE = (
    *(f"cli/{name}.py" for name in ("internal_records", "formats", "sniff_messages", "text")),
    "protocol",
    "coordinator/controller/",
    "coordinator/group/",
    "coordinator/runtime",
    *(
        f"coordinator/membership/{name}.py"
        for name in ("channel", "contract", "datagram_limits", "datagrams", "gossip", "members", "probes", "swim")
    ),
    *(f"coordinator/metadata/{name}.py" for name in ("changes", "placement", "topic", "topic_names", "tree", "znodes")),
    *(f"client/{name}.py" for name in ("checks", "config", "errors", "types")),
    *(f"client/admin/{name}.py" for name in ("call_results", "descriptions")),
    *(
        f"client/consumer/{name}.py"
        for name in (
            "aborted",
            "auto_commit",
            "completed_fetch",
            "delivered_records",
            "fetch_buffer",
            "fetch_response",
            "fetch_session",
            "positions",
            "sources",
        )
    ),
    "client/offsets/offset_errors.py",
    *(f"client/network/{name}.py" for name in ("backoff", "error_actions", "metadata", "targets")),
    *(f"transport/{name}.py" for name in ("errors", "frames", "versions")),
    *(
        f"client/producer/{name}.py"
        for name in (
            "accumulator",
            "answers",
            "batch",
            "partitioner",
            "records",
            "requests",
            "route",
            "sequences",
            "produce_response",
            "sticky",
        )
    ),
    "client/group/assignors",
    *(
        f"client/group/{name}.py"
        for name in (
            "assign",
            "effects",
            "events",
            "heartbeat",
            "join",
            "leader_assignment",
            "leave",
            "machine",
            "metadata_watch",
            "notes",
            "refusals",
            "state",
            "states",
            "subscription",
            "sync",
        )
    ),
    *(
        f"spark_connector/{name}.py"
        for name in ("data_loss", "errors", "filters", "offsets", "options", "plan", "schema")
    ),
    *(
        f"spark_connector/pipelines/{name}.py"
        for name in ("decode", "lag", "progress_lines", "report_charts", "report_rows")
    ),
)
IMPURE = {"asyncio", "os", "random", "secrets", "select", "socket", "structlog", "threading", "time", "uvloop"}
# the shell of the shards narrates to the log; all it decides is in pure files beside it
CLAIMS_PURE = re.compile(r"\bPure\b(?! but)")
IMPURE_ALLOWED = {("coordinator/runtime/coordinator.py", "structlog")}
# folders of declarations: what holds them is generated for every message or property at once
COVERED_TOGETHER = {
    "protocol/messages": "tests/property/test_wire.py",
    "coordinator/config": "tests/unit/coordinator/config",
}


@cache
def sources() -> tuple[Path, ...]:
    return tuple(sorted(path for top in PACKAGES for path in (ROOT / top).rglob("*.py")))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@pytest.fixture(scope="module", autouse=True)
def _trees_are_forgotten() -> Iterator[None]:
    """They are a million objects: each later full collection in this process would take half a second for them."""
    yield
    tree_of.cache_clear()


def head_of(path: Path) -> str:
    return ast.get_docstring(tree_of(path)) or ""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """What is within a module or a statement, without its expressions: those are nine of ten nodes."""
    for block in ("body", "orelse", "handlers", "finalbody", "cases"):
        for each in getattr(node, block, ()):
            yield each
            yield from statements(each)


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in statements(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def imported(tree: ast.AST) -> set[str]:
    """The top names of what a file imports when it is loaded (not what only a type checker sees)."""
    for_types = {id(node) for branch in statements(tree) if _is_for_types(branch) for node in statements(branch)}
    found = set()
    for node in statements(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


# each test looks at all files and names those that break the rule: hundreds of cases of a millisecond cost seconds


def test_a_file_and_its_functions_fit_on_a_few_screens() -> None:
    long_files = [path for path in sources() if path.read_text().count("\n") > MODULE_LINES_MAX]
    assert [named(path) for path in long_files if "longer than" not in head_of(path)] == [], "say why in its head"
    assert [found for path in sources() for found in long_functions(path)] == []


def long_functions(path: Path) -> list[str]:
    lengths = ((node, (node.end_lineno or 0) - node.lineno + 1) for node in functions(tree_of(path)))
    return [f"{named(path)}:{node.lineno}: {node.name}" for node, length in lengths if length > FUNCTION_LINES_MAX]


def test_every_file_begins_with_a_docstring() -> None:
    assert [named(path) for path in sources() if not head_of(path)] == []


def test_the_listed_pure_modules_exist() -> None:
    names = [named(path) for path in sources()]
    assert [pure for pure in PURE if not any(name.startswith(pure) for name in names)] == []


def is_pure(path: Path) -> bool:
    """Whether the list or the docstring of the file says so."""
    return named(path).startswith(PURE) or CLAIMS_PURE.search(head_of(path)) is not None


def test_a_pure_file_imports_no_io_and_awaits_nothing() -> None:
    pure = [path for path in sources() if is_pure(path)]
    imports = [(named(path), name) for path in pure for name in sorted(imported(tree_of(path)) & IMPURE)]
    assert set(imports) <= IMPURE_ALLOWED
    assert [named(path) for path in pure if has_coroutines(path)] == []


def has_coroutines(path: Path) -> bool:
    return any(isinstance(node, ast.AsyncFunctionDef) for node in functions(tree_of(path)))


def test_a_source_file_has_a_test_file_of_its_name() -> None:
    tested = [path for path in sources() if path.name not in ("__init__.py", "__main__.py")]
    assert [named(path) for path in tested if not expected_tests(path).exists()] == []


def expected_tests(path: Path) -> Path:
    """Where the tests of a source file are."""
    folder = str(path.parent.relative_to(ROOT))
    return ROOT / COVERED_TOGETHER.get(folder, f"tests/unit/{folder}/test_{path.name}")


def test_the_folders_are_not_installed_under_their_bare_names() -> None:
    code = f"import rota.coordinator.broker, sys; print([name for name in {PACKAGES} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == "[]"
