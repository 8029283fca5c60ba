"""A streaming query of PySpark 4.0 and 4.1, which request the end of a source without the start and without a limit.

Laws
    A micro-batch reads to the ends of the logs. Options that need a limit or a start are refused by name.
    The start `latest` is the end of the first micro-batch: one that fails loses no record.
    A loss that the driver sees only when the micro-batch is planned, because it did not know the start before, is
    reported then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql.datasource import InputPartition

from rota.spark_connector.data_loss import detect_losses
from rota.spark_connector.errors import OptionError
from rota.spark_connector.offset_bounds import is_reproducible
from rota.spark_connector.offsets import LATEST, Offsets, from_json_tree, to_json_tree
from rota.spark_connector.options import TRIGGER_DELAY_MAX_MS, ReadOptions
from rota.spark_connector.spark_api import STREAM_LIMITS, VERSION, ReadAllAvailable
from rota.spark_connector.stream import JsonTree, RotaStreamReader

_NEEDED: Final = f"left out, or used with PySpark {STREAM_LIMITS} or newer; this is PySpark {VERSION}"


class RotaUnlimitedStreamReader(RotaStreamReader):
    """As RotaStreamReader. Raises OptionError for options that this PySpark cannot carry out."""

    def __init__(self, options: ReadOptions) -> None:
        check_options(options)
        super().__init__(options)
        self._last_end: Offsets | None = None  # of the last micro-batch that was planned
        self._first_ends: Offsets | None = None  # the start `latest`

    def initialOffset(self) -> JsonTree:  # Spark's name
        """Return where a new query starts."""
        if self._initial is None and self._options.starting.offset == LATEST:
            self._initial = self._first_ends = self._first_ends or self._log_ends({})
            self._is_first_batch = True
        return super().initialOffset()

    def latestOffset(self) -> JsonTree:  # type: ignore[override]  # the signature before 4.2
        """The end of the next micro-batch. Raises DataLost, KafkaError."""
        if self._last_end is not None:
            return super().latestOffset(to_json_tree(self._last_end), ReadAllAvailable())
        if self._options.starting.offset == LATEST and self._first_ends is None:
            self._first_ends = self._log_ends({})
            return to_json_tree(self._first_ends)
        return to_json_tree(self._log_ends({}))

    def partitions(self, start: JsonTree, end: JsonTree) -> Sequence[InputPartition]:
        """The input partitions between two offsets of this query. Raises DataLost, KafkaError."""
        begin, ends = from_json_tree(start), from_json_tree(end)
        if not self._is_first_batch:
            self._report(detect_losses(begin, ends, ()))
        planned = super().partitions(start, end)
        self._last_end = ends
        return planned


def check_options(options: ReadOptions) -> None:
    """Raises OptionError with the name of an option that needs a newer PySpark."""
    limits: dict[str, Any] = {
        "maxOffsetsPerTrigger": options.offsets_per_trigger_max,
        "minOffsetsPerTrigger": options.offsets_per_trigger_min,
    }
    if options.trigger_delay_max_ms != TRIGGER_DELAY_MAX_MS:
        limits["maxTriggerDelay"] = options.trigger_delay_max_ms
    for name, value in limits.items():
        if value is not None:
            raise OptionError(name, value, _NEEDED)
    bound = options.starting
    if bound.from_group:
        raise OptionError(bound.option, "group", _NEEDED)
    if bound.has_time and options.latest_when_no_time:
        raise OptionError("startingOffsetsByTimestampStrategy", "latest", f"error, {_NEEDED}")
    if not is_reproducible(options) and bound.offset != LATEST:
        raise OptionError(bound.option, LATEST, f"an offset, {_NEEDED}")
