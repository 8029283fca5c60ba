"""The folders of a table: DAY=2026-11-23/batch_id=12. Finds, removes and replaces them, without the JVM.

Laws
    A micro-batch that is removed has no file left in any day, nor where Spark keeps the files of tasks until their job
    ends: the next job would move those of a killed one too. It can be written again without duplicates.
    A table belongs to the query that wrote its first micro-batch, and no micro-batch is written when later ones are
    there: the checkpoint is another's, or an older copy, and the query would write rows a second time.
    Joined micro-batches are replaced when the copy of their rows is complete. A crash during the replacement loses and
    duplicates nothing: `recover` finishes it or drops the copy. No folder is renamed: object stores cannot.
    On a local disk the same holds when the power fails: each step is durable before the next one destroys anything.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import PurePosixPath
from typing import Final

from pyarrow import fs

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.locations import file_system, has_files, is_url, read_text, sync_of

BATCH: Final = "batch_id"
COPY: Final = "_copy"  # the joined rows of micro-batches, before they replace these; readers skip the name
PLAN: Final = "plan.json"  # what the copy replaces: from then on, a crash finishes the replacement
OWNER: Final = "_query_id"  # of the query that writes the table; readers skip the name
DELTA_LOG: Final = "_delta_log"  # the folder that makes a folder a table of Delta
UNFINISHED: Final = "_temporary"  # of Hadoop's FileOutputCommitter: what tasks have written, until the end of their job
_BATCH_FOLDER: Final = re.compile(BATCH + r"=(\d+)")


class TableFiles:
    """The files of the table in `location`, a local path or a URL that pyarrow knows. `day` is the name of its first
    partition column."""

    def __init__(self, location: str, day: str) -> None:
        self.location, self.day = location, day
        self._files, self._root = file_system(location)
        self._sync = sync_of(self._files)

    def create(self) -> None:
        """Create the folder of the table, so that a table without rows can be read."""
        self._files.create_dir(self._root)

    def days(self) -> list[str]:
        """The names of the folders of days, in order."""
        return [name for name in self._names(self._root) if name.startswith(f"{self.day}=")]

    def batches(self, day: str) -> list[int]:
        """The numbers of the micro-batches in the folder of a day, in order."""
        matches = (_BATCH_FOLDER.fullmatch(name) for name in self._names(f"{self._root}/{day}"))
        return sorted(int(match[1]) for match in matches if match)

    def newest(self, before: int) -> int | None:
        """The newest micro-batch with rows among those before `before`; None: there is none."""
        return max((number for day in self.days() for number in self.batches(day) if number < before), default=None)

    def folders(self, number: int) -> list[str]:
        """The folders of a micro-batch, one for each of its days."""
        days = [day for day in self.days() if number in self.batches(day)]
        return [f"{self.location}/{day}/{BATCH}={number}" for day in days]

    def size_bytes(self, day: str, number: int) -> int:
        """The size of the files of a micro-batch in a day."""
        selector = fs.FileSelector(self._folder(day, number), recursive=True)
        return sum(info.size or 0 for info in self._files.get_file_info(selector))

    def check(self, query: str, number: int) -> None:
        """Before the first micro-batch of a run. Raises OptionError when the table has rows of another query, or later
        ones."""
        if (self.newest(sys.maxsize) or 0) > number:
            raise older_checkpoint(self.location, number)
        owner = self.owner()
        if owner not in ("", query):
            expected = (
                f"a folder of this query, not of another one: its checkpoint has the id {owner}, this one {query}"
            )
            raise OptionError("--output", self.location, expected)

    def restart(self, query: str, number: int) -> None:
        """Remove what an earlier run of this query has written of its last micro-batch. Raises as `check`, and removes
        nothing then."""
        self.check(query, number)
        self.claim(query)
        self.remove_batch(number)

    def claim(self, query: str) -> None:
        """Note that this query writes the table, unless the owner of the table is known."""
        if not self.owner():
            self.create()
            with self._files.open_output_stream(f"{self._root}/{OWNER}") as out:
                out.write(f"{query}\n".encode())

    def owner(self) -> str:
        """The id of the query that writes the table; "": unknown."""
        text = read_text(f"{self.location}/{OWNER}")
        return text[:-1] if text.endswith("\n") else ""  # of a crash while it was written

    def has_other_files(self) -> bool:
        """Whether the folder has more than a table of Delta writes before its first commit: days without
        micro-batches."""
        others = [name for name in self._names(self._root) if name not in (*self.days(), DELTA_LOG)]
        return bool(others) or any(self.batches(day) for day in self.days())

    def remove_batch(self, number: int) -> None:
        """Remove what a micro-batch has written into any day, and what a killed job has not finished."""
        self._remove(f"{self._root}/{UNFINISHED}")
        for day in self.days():
            if number in self.batches(day):
                self._remove(self._folder(day, number))

    def remove_day(self, day: str) -> None:
        """Remove the folder of a day."""
        self._remove(f"{self._root}/{day}")

    def copy_location(self, day: str, number: int) -> str:
        """Where the joined rows of several micro-batches are to be written; `number` is the last one of them."""
        return f"{self.location}/{COPY}/{day}/{BATCH}={number}"

    def replace(self, day: str, numbers: list[int]) -> None:
        """Replace the folders of micro-batches by the folder in `copy_location`, which has all of their rows. Raises
        OSError, and then has replaced nothing if the disk could not take the files."""
        copy, plan = self._copy(day, numbers), f"{self._root}/{COPY}/{PLAN}"
        files = self._data_files(copy)
        self._files.create_dir(f"{self._root}/{COPY}")
        self._sync([*(f"{copy}/{name}" for name in files), copy, *self._folders_above(copy)])
        with self._files.open_output_stream(plan) as out:
            out.write(json.dumps({"day": day, "numbers": numbers, "files": files}).encode())
        self._sync([plan, *self._folders_above(plan)])
        try:
            self._copy_files(day, numbers, files)
        except OSError:
            self._undo(day, numbers, files)
            raise
        self._finish(day, numbers, files)

    def _undo(self, day: str, numbers: list[int], files: list[str]) -> None:
        """Before anything was deleted. The copy is dropped, too, which a full disk has no room for."""
        target = self._folder(day, numbers[-1])
        for name in set(files) & set(self._names(target)):
            self._files.delete_file(f"{target}/{name}")
        self._sync([target])
        self._remove(f"{self._root}/{COPY}")

    def recover(self) -> None:
        """Finish the replacement that a crash has interrupted; drop a copy that is not complete."""
        plan = f"{self._root}/{COPY}/{PLAN}"
        if self._files.get_file_info(plan).type == fs.FileType.File:
            with self._files.open_input_stream(plan) as file:
                text = file.read()
            if text.endswith(b"}"):  # else it is not complete, and was followed by nothing
                day, numbers, files = self._read_plan(text)
                self._copy_files(day, numbers, files)
                self._finish(day, numbers, files)
        self._remove(f"{self._root}/{COPY}")

    def _read_plan(self, text: bytes) -> tuple[str, list[int], list[str]]:
        """Raises OptionError."""
        try:
            found = json.loads(text)
            day, numbers = str(found["day"]), [int(number) for number in found["numbers"]]
            # plans of earlier versions have no list: these moved the whole folder at once
            return day, numbers, list(found.get("files", self._data_files(self._copy(day, numbers))))
        except (ValueError, TypeError, LookupError, AttributeError):
            lost = f"{COPY}/{PLAN} is damaged, which says what the rows in {COPY} replace; restore it"
            raise OptionError("--output", self.location, f"the place of tables without damage: {lost}") from None

    def _copy_files(self, day: str, numbers: list[int], files: list[str]) -> None:
        """Object stores move no folders, so each file is copied."""
        copy, target = self._copy(day, numbers), self._folder(day, numbers[-1])
        if self._is_whole(copy, files):
            self._files.create_dir(target)
            for name in files:
                self._files.copy_file(f"{copy}/{name}", f"{target}/{name}")
            self._sync([*(f"{target}/{name}" for name in files), target, *self._folders_above(target)])

    def _finish(self, day: str, numbers: list[int], files: list[str]) -> None:
        """Delete what is replaced. The copy is deleted last: if a file of it is missing, that was complete."""
        copy, target = self._copy(day, numbers), self._folder(day, numbers[-1])
        if self._is_whole(copy, files):
            for number in numbers[:-1]:
                self._remove(self._folder(day, number))
            for name in set(self._names(target)) - set(files):
                self._files.delete_file(f"{target}/{name}")
            self._sync([target, *self._folders_above(target)])
        self._remove(f"{self._root}/{COPY}")

    def _is_whole(self, copy: str, files: list[str]) -> bool:
        return bool(files) and set(files) <= set(self._data_files(copy))

    def _folders_above(self, path: str) -> list[str]:
        """The folders from the one with `path` to that of the table, which have the entries of what is new below."""
        parents = PurePosixPath(path).parents
        return [str(each) for each in parents if each.is_relative_to(self._root)]

    def _copy(self, day: str, numbers: list[int]) -> str:
        return f"{self._root}/{COPY}/{day}/{BATCH}={numbers[-1]}"

    def _data_files(self, folder: str) -> list[str]:
        return [name for name in self._names(folder) if not name.startswith(("_", "."))]

    def _folder(self, day: str, number: int) -> str:
        return f"{self._root}/{day}/{BATCH}={number}"

    def _names(self, folder: str) -> Iterator[str]:
        found = self._files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        return iter(sorted(PurePosixPath(info.path).name for info in found))

    def _remove(self, folder: str) -> None:
        if self._files.get_file_info(folder).type == fs.FileType.Directory:
            self._files.delete_dir(folder)


def folder_date(name: str) -> date | None:
    """The day of a folder; None: Python's calendar does not have it, or it is the folder of rows without a day."""
    try:
        return date.fromisoformat(name.partition("=")[2])
    except ValueError:
        return None


def is_delta(location: str) -> bool:
    """Whether a folder is a table of Delta, with a first commit."""
    files, path = file_system(location)
    found = files.get_file_info(fs.FileSelector(f"{path}/{DELTA_LOG}", allow_not_found=True))
    return any(PurePosixPath(info.path).suffix in (".json", ".parquet") for info in found)


def older_checkpoint(location: str, number: int) -> OptionError:
    """For a table that has later micro-batches than the one that the query begins with."""
    expected = f"the place of a table without a {BATCH} above {number}: the checkpoint is an older copy"
    return OptionError("--output", location, expected)


def check_checkpoint(output: str, table: str, checkpoint: str) -> None:
    """Raise OptionError when the output folder has the table of a query with another checkpoint."""
    if not has_files(f"{output}/{table}"):
        return
    if not has_files(f"{checkpoint}/offsets"):
        expected = f"empty, or used with the checkpoint of its tables ({checkpoint} is empty)"
        raise OptionError("--output", output, expected)
    owner = TableFiles(f"{output}/{table}", "").owner()
    if owner and owner != query_id(checkpoint):
        expected = f"empty, or used with the checkpoint of its tables ({checkpoint} is that of another query)"
        raise OptionError("--output", output, expected)


def query_id(checkpoint: str) -> str:
    """The id of the query that the checkpoint belongs to. Spark writes it before the first micro-batch. Raises
    OptionError."""
    try:
        return str(json.loads(read_text(f"{checkpoint}/metadata"))["id"])
    except (ValueError, KeyError, TypeError):
        expected = "a checkpoint of Spark: its file metadata is missing or damaged; restore it from a copy"
        if not is_url(checkpoint):
            expected += ". Where fs.defaultFS of Spark is not file:/, give --output and --checkpoint as URLs"
        raise OptionError("--checkpoint", checkpoint, expected) from None
