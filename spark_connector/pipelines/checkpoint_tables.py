"""The tables that a checkpoint belongs to: a file in its folder has their format and, for Iceberg, their namespace.

Laws
    A query that has progress goes on in tables of the same format and namespace: others would lack all rows before.
    A checkpoint without the file, of an earlier version, belongs to the tables in the output folder, if there are any.
    Nor does it go on in a folder without them: that of another job, or of the same job before the tables were moved.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.locations import file_system, has_files, read_text, sync_of
from rota.spark_connector.pipelines.table_files import is_delta

FILE: Final = "job.tables"  # in the folder of the checkpoint, where Spark leaves it alone
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
    """Raise OptionError when the query of the checkpoint has no keys of earlier records and this one needs them, or the
    other way around: Spark goes on with neither."""
    has_keys = has_files(f"{checkpoint}/state")
    if not has_files(f"{checkpoint}/commits") or has_keys == bool(deduplicate_by):
        return
    of_query = "given, as it was" if has_keys else "absent, as it was"
    expected = f"{of_query} when the checkpoint {checkpoint} began; to change it give another --output and --checkpoint"
    raise OptionError("--deduplicate-by", ",".join(deduplicate_by) or None, expected)


def record_tables(place: Place) -> None:
    """Note which tables the checkpoint belongs to."""
    wanted = (place.table_format, place.namespace)
    if _recorded(place.checkpoint) == wanted:
        return
    files, path = file_system(place.checkpoint)
    files.create_dir(path)
    with files.open_output_stream(f"{path}/{FILE}") as out:
        out.write(json.dumps(dict(zip(("format", "namespace"), wanted, strict=True))).encode() + b"\n")
    sync_of(files)([f"{path}/{FILE}", path])


def _recorded(checkpoint: str) -> tuple[str, str] | None:
    """The format and the namespace; None: unknown, as after a crash while they were written. Raises OptionError."""
    text = read_text(f"{checkpoint}/{FILE}")
    if not text.endswith("\n"):
        return None
    try:
        found = json.loads(text)
        return found["format"], found["namespace"]
    except (ValueError, KeyError, TypeError):
        expected = f"one with a valid {FILE}, a line such as {EXAMPLE}: the file is damaged; write that line again"
        raise OptionError("--checkpoint", checkpoint, expected) from None


def _found(output: str, names: Iterable[str]) -> str:
    """The format of the tables in a folder; "": there are none."""
    folders = [f"{output}/{name}" for name in names if has_files(f"{output}/{name}")]
    if not folders:
        return ""
    return "delta" if any(is_delta(folder) for folder in folders) else "parquet"
