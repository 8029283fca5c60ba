"""The tables that a checkpoint belongs to: a file in its folder has their format and, for Iceberg, their namespace.
Another one has the fields of `--deduplicate-by`, whose values are in the state of the query.

Laws
    A query that has progress goes on in tables of the same format and namespace: others would lack all rows before.
    A checkpoint without the file, of an earlier version, belongs to the tables in the output folder, if there are any.
    Nor does it go on in a folder without them: that of another job, or of the same job before the tables were moved.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.locations import file_system, has_files, read_text, sync_of
from rota.spark_connector.pipelines.table_files import is_delta

FILE: Final = "job.tables"  # in the folder of the checkpoint, where Spark leaves it alone
KEYS: Final = "job.keys"  # beside it
EXAMPLE: Final = '{"format": "parquet", "namespace": ""}'


class Place(NamedTuple):
    """Where the tables of a job are: in the folder `output`, or in the `namespace` of a catalog (Iceberg)."""

    table_format: str
    output: str
    namespace: str
    checkpoint: str


def check_tables(place: Place, names: Collection[str]) -> None:
    """Raise OptionError when the checkpoint has progress in tables of another format, namespace or folder; `names` are
    those of the tables."""
    if not has_files(f"{place.checkpoint}/offsets"):
        return
    found = _found(place.output, names)
    table_format, namespace = _recorded(place.checkpoint) or (found, place.namespace)
    if table_format not in ("", place.table_format):
        expected = f"{table_format}, the format of the tables of the checkpoint {place.checkpoint}"
        raise OptionError("--format", place.table_format, expected)
    if namespace != place.namespace:
        expected = f"{namespace}, which has the tables of the checkpoint {place.checkpoint}"
        raise OptionError("--namespace", place.namespace, expected)
    if not (namespace or found) and has_files(f"{place.checkpoint}/commits"):
        expected = (
            f"the folder with the tables of the checkpoint {place.checkpoint}, which has progress: it has none of "
            f"{', '.join(names)}; for new tables, or those of another job, give another --checkpoint"
        )
        raise OptionError("--output", place.output, expected)


def check_state(checkpoint: str, deduplicate_by: tuple[str, ...]) -> None:
    """Raise OptionError when the query of the checkpoint keeps other keys of earlier records than this one needs, or
    none: Spark goes on with what it has. Note the keys of a query that begins."""
    has_keys, has_progress = has_files(f"{checkpoint}/state"), has_files(f"{checkpoint}/commits")
    names = _names(checkpoint) if has_progress else None
    if has_progress and (has_keys != bool(deduplicate_by) or names not in (None, deduplicate_by)):
        of_query = (",".join(names or ()) or "given") if has_keys else "absent"
        expected = f"{of_query}, as it was when the checkpoint {checkpoint} began"
        expected += "; to change it give another --output and --checkpoint"
        raise OptionError("--deduplicate-by", ",".join(deduplicate_by) or None, expected)
    if names is None:
        _write(checkpoint, KEYS, list(deduplicate_by))


def record_tables(place: Place) -> None:
    """Note which tables the checkpoint belongs to."""
    wanted = (place.table_format, place.namespace)
    if _recorded(place.checkpoint) == wanted:
        return
    _write(place.checkpoint, FILE, dict(zip(("format", "namespace"), wanted, strict=True)))


def _write(checkpoint: str, name: str, value: object) -> None:
    files, path = file_system(checkpoint)
    files.create_dir(path)
    with files.open_output_stream(f"{path}/{name}") as out:
        out.write(json.dumps(value).encode() + b"\n")
    sync_of(files)([f"{path}/{name}", path])


def _recorded(checkpoint: str) -> tuple[str, str] | None:
    """The format and the namespace; None: unknown, as after a crash while they were written. Raises OptionError."""
    try:
        found = _read(checkpoint, FILE)
        return None if found is None else (found["format"], found["namespace"])
    except (ValueError, KeyError, TypeError):
        raise _damaged(checkpoint, FILE, EXAMPLE) from None


def _names(checkpoint: str) -> tuple[str, ...] | None:
    """The fields of `--deduplicate-by`; None: unknown. Raises OptionError."""
    try:
        found = _read(checkpoint, KEYS)
        return None if found is None else tuple(map(str, found))
    except (ValueError, TypeError):
        raise _damaged(checkpoint, KEYS, '["id"]') from None


def _read(checkpoint: str, name: str) -> Any:
    """What `_write` wrote; None: nothing, or not all of it. Raises ValueError."""
    text = read_text(f"{checkpoint}/{name}")
    return json.loads(text) if text.endswith("\n") else None


def _damaged(checkpoint: str, name: str, example: str) -> OptionError:
    expected = f"one with a valid {name}, a line such as {example}: the file is damaged; write that line again"
    return OptionError("--checkpoint", checkpoint, expected)


def _found(output: str, names: Iterable[str]) -> str:
    """The format of the tables in a folder; "": there are none."""
    folders = [f"{output}/{name}" for name in names if has_files(f"{output}/{name}")]
    if not folders:
        return ""
    return "delta" if any(is_delta(folder) for folder in folders) else "parquet"
