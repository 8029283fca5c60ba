"""Folders of days and micro-batches: removal, replacement, and crashes in the middle of a replacement."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

import pytest
from pyarrow import fs

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.locations import has_files, no_sync
from rota.spark_connector.pipelines.table_files import BATCH, COPY, OWNER, PLAN, TableFiles, check_checkpoint, query_id

DAY = "day=2026-01-02"


def fill(folder: Path, numbers: range, *, day: str = DAY) -> TableFiles:
    for number in numbers:
        write(folder / day / f"{BATCH}={number}", str(number))
    return TableFiles(str(folder), "day")


def write(folder: Path, text: str, *, name: str = "part") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


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


class ObjectStore:
    """A file system of objects: no folder is moved, and a folder is deleted file by file. It fails after `left`
    changes."""

    def __init__(self, left: int) -> None:
        self._files, self._left = fs.LocalFileSystem(), left

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)

    def _change(self) -> None:
        if self._left == 0:
            raise Crash
        self._left -= 1

    def create_dir(self, path: str) -> None:
        self._change()
        self._files.create_dir(path)

    def open_output_stream(self, path: str) -> object:
        self._change()
        return self._files.open_output_stream(path)

    def copy_file(self, source: str, target: str) -> None:
        self._change()
        self._files.copy_file(source, target)

    def delete_file(self, path: str) -> None:
        self._change()
        self._files.delete_file(path)

    def delete_dir(self, path: str) -> None:
        for info in self._files.get_file_info(fs.FileSelector(path, recursive=True)):
            if info.type == fs.FileType.File:
                self.delete_file(info.path)
        self._files.delete_dir(path)

    def move(self, source: str, target: str) -> None:
        if Path(source).is_dir():
            raise NotImplementedError("objects have no folders")
        self._change()
        self._files.move(source, target)


def on_object_store(table: TableFiles, left: int = -1) -> TableFiles:
    """The table in an ObjectStore that never fails, or after `left` changes."""
    table._files = ObjectStore(left)  # type: ignore[assignment] # what TableFiles uses of one
    table._sync = no_sync
    return table


def three_batches(folder: Path) -> TableFiles:
    """A table of three micro-batches of two files each; the first two are joined in the copy."""
    for number in range(3):
        for part in "ab":
            write(folder / DAY / f"{BATCH}={number}", f"{number}{part} ", name=f"part-{number}{part}")
    table = TableFiles(str(folder), "day")
    for part, text in (("x", "0a 0b "), ("y", "1a 1b ")):
        write(Path(table.copy_location(DAY, 1)), text, name=f"part-{part}")
    (Path(table.copy_location(DAY, 1)) / "_SUCCESS").touch()
    return table


def rows(folder: Path) -> str:
    return " ".join(sorted("".join(file.read_text() for file in folder.glob("day=*/*/part*")).split()))


def test_a_crash_at_any_step_of_a_replacement_and_of_its_recovery_loses_and_duplicates_nothing(tmp_path: Path) -> None:
    """Each change of the file system is the last one once; so is each change of the next start, and the start after
    it completes the replacement."""
    crashes = 0
    for step in count():
        folder = tmp_path / str(step)
        try:
            on_object_store(three_batches(folder), step).replace(DAY, [0, 1])
            break
        except Crash:
            crashes += 1
        for again in count():
            second = tmp_path / f"{step}-{again}"
            shutil.copytree(folder, second)
            try:
                on_object_store(TableFiles(str(second), "day"), again).recover()
                is_recovered = True
            except Crash:
                is_recovered = False
                on_object_store(TableFiles(str(second), "day")).recover()
            assert rows(second) == "0a 0b 1a 1b 2a 2b", (step, again)
            assert not (second / COPY).exists()
            if is_recovered:
                break
    assert crashes > 10
    assert rows(folder) == "0a 0b 1a 1b 2a 2b"
    assert sorted(folder.glob("day=*/*/*")) == [
        folder / DAY / name
        for name in (f"{BATCH}=1/part-x", f"{BATCH}=1/part-y", f"{BATCH}=2/part-2a", f"{BATCH}=2/part-2b")
    ]


class Disk(ObjectStore):
    """A disk whose power fails after `left` changes. Of what was not synced, all that is new is lost, or what was
    deleted is there again."""

    def __init__(self, left: int, new: set[str]) -> None:
        super().__init__(left)
        self._contents, self._entries = set(new), set(new)
        self._deleted: dict[str, bytes] = {}

    def create_dir(self, path: str) -> None:
        folder = Path(path)
        self._entries |= {str(each) for each in (folder, *folder.parents) if not each.exists()}
        super().create_dir(path)

    def open_output_stream(self, path: str) -> object:
        self._note(path)
        return super().open_output_stream(path)

    def copy_file(self, source: str, target: str) -> None:
        super().copy_file(source, target)
        self._note(target)

    def _note(self, path: str) -> None:
        self._contents.add(path)
        self._entries.add(path)

    def delete_file(self, path: str) -> None:
        content = Path(path).read_bytes()
        super().delete_file(path)
        self._deleted[path] = content

    def sync(self, paths: Iterable[str]) -> None:
        for path in map(Path, paths):
            self._contents.discard(str(path))
            if path.is_dir():
                self._entries = {each for each in self._entries if Path(each).parent != path}
                removed = {each for each in self._deleted if is_removed(Path(each), path)}
                self._deleted = {each: text for each, text in self._deleted.items() if each not in removed}

    def fail(self, lost: str) -> None:
        if lost == "writes":
            for path in map(Path, sorted(self._contents | self._entries)):
                is_lost = str(path) in self._entries
                if is_lost and path.is_dir():
                    shutil.rmtree(path)
                elif is_lost:
                    path.unlink(missing_ok=True)
                elif path.exists():
                    path.write_bytes(b"")
            return
        for name, content in self._deleted.items():
            if lost == "deletions" or COPY not in name:
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_bytes(content)


def is_removed(deleted: Path, folder: Path) -> bool:
    """Whether a sync of `folder` makes the deletion durable: it had the file, or a folder with it that is gone."""
    return deleted.parent == folder or any(each.parent == folder and not each.exists() for each in deleted.parents)


def on_disk(table: TableFiles, left: int, new: Iterable[Path] = ()) -> Disk:
    """The table on a Disk where the files and folders `new` are not synced."""
    disk = Disk(left, set(map(str, new)))
    table._files = disk  # type: ignore[assignment] # what TableFiles uses of one
    table._sync = disk.sync
    return disk


def interrupted(action: Callable[[], None]) -> bool:
    try:
        action()
    except Crash:
        return True
    return False


@pytest.mark.parametrize("lost", ["writes", "deletions", "deletions outside of the copy"])
def test_a_power_failure_at_any_step_of_a_replacement_loses_and_duplicates_nothing(tmp_path: Path, lost: str) -> None:
    failures = 0
    for step in count():
        folder = tmp_path / str(step)
        table = three_batches(folder)
        of_spark = [folder / COPY, *(folder / COPY).rglob("*")]  # which syncs nothing
        disk = on_disk(table, step, of_spark)
        is_over = not interrupted(lambda table=table: table.replace(DAY, [0, 1]))  # type: ignore[misc]
        disk.fail(lost)
        second = TableFiles(str(folder), "day")
        disk = on_disk(second, step // 2)
        interrupted(second.recover)
        disk.fail(lost)
        on_object_store(TableFiles(str(folder), "day")).recover()
        assert rows(folder) == "0a 0b 1a 1b 2a 2b", step
        if is_over:
            break
        failures += 1
    assert failures > 10


class Full(ObjectStore):
    """A disk that has no room for the second of two files."""

    def copy_file(self, source: str, target: str) -> None:
        if source.endswith("part-y"):
            Path(target).write_text("1a")
            raise OSError(errno.ENOSPC, "No space left on device")
        super().copy_file(source, target)


@pytest.mark.parametrize("is_over", [True, False])
def test_a_disk_without_room_for_the_joined_files_keeps_the_table_as_it_was(tmp_path: Path, is_over: bool) -> None:
    """The next start has no replacement to finish, for which there is no room."""
    table = three_batches(tmp_path)
    table._files = Full(-1)  # type: ignore[assignment] # what TableFiles uses of one
    with pytest.raises(OSError, match="No space left"):
        table.replace(DAY, [0, 1])
    if is_over:
        TableFiles(str(tmp_path), "day").recover()
    assert rows(tmp_path) == "0a 0b 1a 1b 2a 2b"
    assert not (tmp_path / COPY).exists()


def test_a_local_table_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = set()

    def fsync(handle: int) -> None:
        synced.add(Path(f"/proc/self/fd/{handle}").readlink())

    monkeypatch.setattr("os.fsync", fsync)
    three_batches(tmp_path).replace(DAY, [0, 1])
    target = tmp_path / DAY / f"{BATCH}=1"
    assert {tmp_path, tmp_path / COPY / PLAN, target / "part-x", target / "part-y", target, target.parent} <= synced


def test_the_files_of_a_killed_job_are_removed_with_its_micro_batch(tmp_path: Path) -> None:
    """The next job would move what tasks of any job have left there."""
    table = fill(tmp_path, range(2))
    write(tmp_path / "_temporary/0/task_1" / DAY / f"{BATCH}=1", "1")
    table.remove_batch(1)
    assert not (tmp_path / "_temporary").exists()
    assert content(tmp_path) == {f"{DAY}/{BATCH}=0": "0"}


def test_a_replacement_that_an_earlier_version_began_is_finished(tmp_path: Path) -> None:
    """Its plan has no list of files, and the folders that it replaces may be deleted."""
    table = three_batches(tmp_path)
    (tmp_path / COPY / PLAN).write_text(json.dumps({"day": DAY, "numbers": [0, 1]}))
    table._files.delete_dir(f"{tmp_path}/{DAY}/{BATCH}=0")
    table._files.delete_dir(f"{tmp_path}/{DAY}/{BATCH}=1")
    table.recover()
    assert rows(tmp_path) == "0a 0b 1a 1b 2a 2b"


def test_an_incomplete_plan_or_copy_is_dropped(tmp_path: Path) -> None:
    table = fill(tmp_path, range(2))
    write(Path(table.copy_location(DAY, 1)), "0")
    (tmp_path / COPY / PLAN).write_text('{"day": "')
    table.recover()
    assert sorted(content(tmp_path).values()) == ["0", "1"]
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize(
    "plan",
    [
        b"}",
        b"{\xff}",
        b'[{"day": "d"}',
        *(b'{"day": "d"%s}' % rest for rest in (b"", b', "numbers": []', b', "numbers": {}')),
    ],
)
def test_a_damaged_plan_is_an_error_with_its_name_and_nothing_is_deleted(tmp_path: Path, plan: bytes) -> None:
    table = three_batches(tmp_path)
    (tmp_path / COPY / PLAN).write_bytes(plan)
    with pytest.raises(OptionError, match=r"_copy/plan\.json is damaged"):
        table.recover()
    assert (tmp_path / COPY / DAY).exists()
    assert rows(tmp_path) == "0a 0b 1a 1b 2a 2b"


@pytest.mark.parametrize("text", ["", '{"id":', "[]", "{}"])
def test_a_checkpoint_with_damaged_metadata_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "metadata").write_text(text)
    with pytest.raises(OptionError, match=r"--checkpoint.*its file metadata is missing or damaged"):
        query_id(str(tmp_path))


def test_the_newest_batch_with_rows_may_be_in_several_days(tmp_path: Path) -> None:
    table = fill(tmp_path, range(4))
    fill(tmp_path, range(2, 3), day="day=2026-01-01")
    assert table.newest(3) == 2
    assert table.folders(2) == [f"{tmp_path}/{day}/{BATCH}=2" for day in ("day=2026-01-01", DAY)]
    assert table.newest(0) is None
    new = TableFiles(str(tmp_path / "new"), "day")
    new.create()
    assert new.newest(9) is None
    assert new.folders(9) == new.days() == []


def test_the_table_of_another_checkpoint_is_not_written(tmp_path: Path) -> None:
    """A query that starts from the beginning would write every record a second time."""
    output, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    check_checkpoint(str(output), "lag", str(checkpoint))
    write(output / "lag", "rows")
    with pytest.raises(OptionError, match="used with the checkpoint of its tables"):
        check_checkpoint(str(output), "lag", str(checkpoint))
    write(checkpoint / "offsets", "0")
    check_checkpoint(str(output), "lag", str(checkpoint))
    write(checkpoint, '{"id":"own"}', name="metadata")
    TableFiles(f"{output}/lag", "day").restart("own", 0)
    check_checkpoint(str(output), "lag", str(checkpoint))
    write(checkpoint, '{"id":"other"}', name="metadata")  # of a query with other tables
    with pytest.raises(OptionError, match="that of another query"):
        check_checkpoint(str(output), "lag", str(checkpoint))


def test_a_run_replaces_its_micro_batch_and_no_one_elses(tmp_path: Path) -> None:
    table = fill(tmp_path, range(3))
    table.restart("own", 2)
    assert sorted(content(tmp_path).values()) == ["0", "1"]
    table.restart("own", 3)
    for query, number, reason in (("other", 1, "another one: its checkpoint has the id own"), ("own", 0, "older copy")):
        with pytest.raises(OptionError, match=reason):
            table.restart(query, number)
        assert sorted(content(tmp_path).values()) == ["0", "1"]


def test_an_owner_that_was_not_written_whole_is_unknown(tmp_path: Path) -> None:
    (tmp_path / OWNER).write_text("ow")
    table = TableFiles(str(tmp_path), "day")
    table.restart("own", 0)
    assert table.owner() == "own"


def test_the_query_of_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"a-b"}')
    assert query_id(str(tmp_path)) == "a-b"
