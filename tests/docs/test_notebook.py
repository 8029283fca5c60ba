"""examples/group_activity.ipynb over tables of a job: its cells run without Jupyter, and in the soak in a kernel."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.soak import soak_only
from tests.unit.spark_connector.pipelines.activity_tables import write_tables

FILE = Path(__file__).parents[2] / "examples" / "group_activity.ipynb"


@pytest.fixture
def activity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed: the notebook's charts are not drawn")
    write_tables(tmp_path)
    monkeypatch.setenv("ACTIVITY", str(tmp_path))
    return tmp_path


def test_the_cells_find_the_groups_and_the_causes(activity: Path) -> None:
    cells = json.loads(FILE.read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells), "it is kept without outputs"
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)  # noqa: S102
    assert names["groups"][0] == "billing"
    assert names["worst"]["billing"][0] == 138
    assert [cause for *_, cause in names["causes"]] == ["first generation in these tables", "b joined", "a left"]
    assert names["page"].startswith("<!doctype html>")


@soak_only
@pytest.mark.timeout(300)
def test_it_runs_in_a_kernel_of_jupyter(activity: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient and ipykernel are not installed: pip install them")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(FILE, as_version=4)
    nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": os.fspath(activity)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pictures = [output.data["image/svg+xml"] for output in outputs if "image/svg+xml" in output.get("data", {})]
    assert len(pictures) == 1
    assert "<svg" in pictures[0]
