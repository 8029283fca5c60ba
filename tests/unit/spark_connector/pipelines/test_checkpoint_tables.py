"""A checkpoint goes on in the tables that it has written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.checkpoint_tables import FILE, KEYS, Place, check_state, check_tables, record_tables

NAMES = ("commits", "lag")


@pytest.fixture
def parquet(tmp_path: Path) -> Place:
    return Place("parquet", f"{tmp_path}/out", "", f"{tmp_path}/checkpoint")


def with_progress(place: Place) -> Place:
    offsets = Path(place.checkpoint, "offsets")
    offsets.mkdir(parents=True, exist_ok=True)
    (offsets / "0").touch()
    return place


def others(place: Place) -> list[Place]:
    """The same job with tables of another format."""
    return [place._replace(table_format="delta"), place._replace(table_format="iceberg", namespace="lake.shop")]


def test_tables_of_another_format_are_refused(parquet: Place) -> None:
    """They would begin in the middle: the records before are in the first ones."""
    record_tables(with_progress(parquet))
    check_tables(parquet, NAMES)
    check_tables(parquet._replace(output="/moved"), NAMES)
    for other in others(parquet):
        with pytest.raises(OptionError, match="parquet, the format of the tables of the checkpoint"):
            check_tables(other, NAMES)


def test_another_namespace_is_refused(parquet: Place) -> None:
    iceberg = with_progress(parquet._replace(table_format="iceberg", namespace="lake.shop"))
    record_tables(iceberg)
    check_tables(iceberg, NAMES)
    with pytest.raises(OptionError, match=r"lake\.shop, which has the tables of the checkpoint"):
        check_tables(iceberg._replace(namespace="lake.other"), NAMES)
    with pytest.raises(OptionError, match="iceberg, the format"):
        check_tables(parquet, NAMES)


def test_a_checkpoint_without_progress_can_have_any_tables(parquet: Place) -> None:
    """A run that ended before its first micro-batch has written nothing."""
    record_tables(parquet)
    for other in others(parquet):
        check_tables(other, NAMES)
        record_tables(other)
        check_tables(with_progress(other), NAMES)
        Path(parquet.checkpoint, "offsets", "0").unlink()


def test_a_folder_without_the_tables_of_the_checkpoint_is_refused(parquet: Place) -> None:
    """The tables would begin in the middle; or both jobs have one --output, and with it one checkpoint."""
    record_tables(with_progress(parquet))
    check_tables(parquet, NAMES)  # killed before the end of the first micro-batch
    commits = Path(parquet.checkpoint, "commits")
    commits.mkdir()
    check_tables(parquet, NAMES)
    (commits / "0").touch()
    Path(parquet.output, "records").mkdir(parents=True)
    Path(parquet.output, "records", "_query_id").touch()
    check_tables(parquet, ("records", "dead_letters"))
    for place in (parquet, parquet._replace(output="/another")):
        with pytest.raises(OptionError, match=r"--output is .* it has none of commits, lag; .* another --checkpoint"):
            check_tables(place, NAMES)
    iceberg = place._replace(table_format="iceberg", namespace="lake.shop")
    record_tables(iceberg)
    check_tables(iceberg, NAMES)  # they are in a catalog


@pytest.mark.parametrize("text", ["", '{"format": "del', '{"format": "delta", "namespace": ""}'])
def test_a_checkpoint_of_an_earlier_version_belongs_to_the_tables_in_its_folder(parquet: Place, text: str) -> None:
    """Also when the process died while it wrote the file."""
    checkpoint = Path(with_progress(parquet).checkpoint)
    (checkpoint / FILE).write_text(text)
    for place in (parquet, *others(parquet)):
        check_tables(place, NAMES)  # no tables in the folder: nothing is known
    table = Path(parquet.output, "lag")
    table.mkdir(parents=True)
    (table / "_query_id").touch()
    check_tables(parquet, NAMES)
    for other in others(parquet):
        with pytest.raises(OptionError, match="parquet, the format"):
            check_tables(other, NAMES)
    (table / "_delta_log").mkdir()
    (table / "_delta_log" / "0.json").touch()
    check_tables(others(parquet)[0], NAMES)
    for other in (parquet, others(parquet)[1]):
        with pytest.raises(OptionError, match="delta, the format"):
            check_tables(other, NAMES)


@pytest.mark.parametrize("text", ["parquet\n", "[]\n", '{"format": "delta"}\n', "\0\n"])
def test_a_damaged_file_is_refused_with_its_name_and_the_remedy(parquet: Place, text: str) -> None:
    (Path(with_progress(parquet).checkpoint) / FILE).write_text(text)
    reason = r"--checkpoint is '.*/checkpoint'.*job\.tables.*write that line again"
    with pytest.raises(OptionError, match=reason):
        check_tables(parquet, NAMES)
    with pytest.raises(OptionError, match=reason):
        record_tables(parquet)


@pytest.mark.parametrize(
    ("began", "fields", "expected"),
    [
        ((), ("id", "at"), "absent"),
        (("id",), (), "id"),
        (("id",), ("at",), "id"),
        (("id", "at"), ("at", "id"), "id,at"),
        (None, (), "given"),
    ],
)
def test_in12_a_query_begins_with_the_keys_of_its_duplicates_and_keeps_them(
    parquet: Place, began: tuple[str, ...] | None, fields: tuple[str, ...], expected: str
) -> None:
    check_state(parquet.checkpoint, fields)
    if began is not None:  # None: in an earlier version, which noted nothing
        check_state(parquet.checkpoint, began)
    else:
        Path(parquet.checkpoint, KEYS).unlink()
    for folder in ("commits", "state") if began != () else ("commits",):
        Path(parquet.checkpoint, folder).mkdir(parents=True)
        Path(parquet.checkpoint, folder, "0").touch()
    with pytest.raises(OptionError, match=f"--deduplicate-by is .*; it must be {expected}, as it was when"):
        check_state(parquet.checkpoint, fields)
    again = ("id",) if began is None else began
    for _ in range(2):
        check_state(parquet.checkpoint, again)
    assert Path(parquet.checkpoint, KEYS).read_text() == f"{json.dumps(again)}\n"


def test_in12_damaged_keys_are_refused_with_the_name_of_the_file(parquet: Place) -> None:
    check_state(parquet.checkpoint, ("id",))
    Path(parquet.checkpoint, "commits").mkdir()
    Path(parquet.checkpoint, "commits", "0").touch()
    Path(parquet.checkpoint, KEYS).write_text("id\n")
    with pytest.raises(OptionError, match=r"--checkpoint is '.*/checkpoint'.*job\.keys.*write that line again"):
        check_state(parquet.checkpoint, ("id",))
