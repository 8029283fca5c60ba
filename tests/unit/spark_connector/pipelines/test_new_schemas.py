"""The ids pass through the message of Spark's error; the restart is in tests/spark/test_ingest.py."""

from __future__ import annotations

from rota.spark_connector.pipelines.new_schemas import NewSchemas, schema_ids


def test_the_ids_are_found_in_the_error_of_a_query() -> None:
    message = f"[STREAM_FAILED] Query terminated with exception: ... NewSchemas: {NewSchemas([103, 7])}\n at ..."
    assert schema_ids(message) == [103, 7]
    assert schema_ids("[STREAM_FAILED] the ids 3") == []
