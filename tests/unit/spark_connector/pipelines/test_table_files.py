"""Folders of days and micro-batches: removal, replacement, and crashes in the middle of a replacement."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.table_files import (
    BATCH,
    COPY,
    PLAN,
    TableFiles,
    check_checkpoint,
    file_system,
    has_files,
)

DAY = "day=2026-01-02"


def fill(folder: Path, numbers: range, *, day: str = DAY) -> TableFiles:
    for number in numbers:
        write(folder / day / f"{BATCH}={number}", str(number))
    return TableFiles(str(folder), "day")


def write(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "part").write_text(text)


def content(folder: Path) -> dict[str, str]:
    """The text of each file, by its folder; without those that readers skip."""
    return {str(file.parent.relative_to(folder)): file.read_text() for file in folder.glob("day=*/*/part")}


def test_days_and_batches_are_in_order_of_their_numbers(tmp_path: Path) -> None:
    table = fill(tmp_path, range(8, 12))
    fill(tmp_path, range(1), day="day=2026-01-01")
    (tmp_path / "_SUCCESS").touch()
    assert table.days() == ["day=2026-01-01", DAY]
    assert table.batches(DAY) == [8, 9, 10, 11]
    assert table.size_bytes(DAY, 11) == 2


def test_a_batch_is_removed_from_all_days(tmp_path: Path) -> None:
    table = fill(tmp_path, range(2))
    fill(tmp_path, range(1, 3), day="day=2026-01-01")
    table.remove_batch(1)
    assert content(tmp_path) == {f"{DAY}/{BATCH}=0": "0", f"day=2026-01-01/{BATCH}=2": "2"}
    table.remove_day(DAY)
    assert table.days() == ["day=2026-01-01"]


def test_a_missing_table_has_no_days(tmp_path: Path) -> None:
    table = TableFiles(str(tmp_path / "missing"), "day")
    assert table.days() == []
    table.remove_batch(0)
    table.recover()
    assert not has_files(str(tmp_path / "missing"))


class Crash(Exception):
    pass


def test_a_crash_at_any_step_of_a_replacement_loses_and_duplicates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call that changes the file system is the last one once; then `recover` runs, as at the next start."""
    ended = False
    step = 0
    while not ended:
        folder = tmp_path / str(step)
        table = fill(folder, range(3))
        write(Path(table.copy_location(DAY, 1)), "01")
        left = step

        class Files:
            """The file system that stops working after `left` changes."""

            def __getattr__(self, name: str, real: object = table._files) -> object:
                nonlocal left
                if name in ("delete_dir", "move", "create_dir", "open_output_stream"):
                    if left == 0:
                        raise Crash
                    left -= 1
                return getattr(real, name)

        monkeypatch.setattr(table, "_files", Files())
        try:
            table.replace(DAY, [0, 1])
            ended = True
        except Crash:
            TableFiles(str(folder), "day").recover()
        rows = "".join(sorted("".join(content(folder).values())))
        assert rows == "012", step
        assert not (folder / COPY).exists()
        step += 1
    assert step > 5
    assert content(folder) == {f"{DAY}/{BATCH}=1": "01", f"{DAY}/{BATCH}=2": "2"}


def test_an_incomplete_plan_or_copy_is_dropped(tmp_path: Path) -> None:
    table = fill(tmp_path, range(2))
    write(Path(table.copy_location(DAY, 1)), "0")
    (tmp_path / COPY / PLAN).write_text('{"day": "')
    table.recover()
    assert sorted(content(tmp_path).values()) == ["0", "1"]
    shutil.rmtree(tmp_path)


def test_paths_and_urls(tmp_path: Path) -> None:
    assert file_system(f"{tmp_path}/")[1] == str(tmp_path)
    assert file_system(tmp_path.as_uri())[1] == str(tmp_path)
    (tmp_path / "x").touch()
    assert has_files(tmp_path.as_uri())


def test_the_newest_batch_with_rows_may_be_in_several_days(tmp_path: Path) -> None:
    table = fill(tmp_path, range(4))
    fill(tmp_path, range(2, 3), day="day=2026-01-01")
    assert table.newest_folders(3) == [f"{tmp_path}/{day}/{BATCH}=2" for day in ("day=2026-01-01", DAY)]
    assert table.newest_folders(0) == []
    new = TableFiles(str(tmp_path / "new"), "day")
    new.create()
    assert new.newest_folders(9) == new.days() == []


def test_the_table_of_another_checkpoint_is_not_written(tmp_path: Path) -> None:
    """A query that starts from the beginning would write every record a second time."""
    output, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    check_checkpoint(str(output), "lag", str(checkpoint))
    write(output / "lag", "rows")
    with pytest.raises(OptionError, match="used with the checkpoint of its tables"):
        check_checkpoint(str(output), "lag", str(checkpoint))
    write(checkpoint / "offsets", "0")
    check_checkpoint(str(output), "lag", str(checkpoint))
