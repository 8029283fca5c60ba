"""The `.properties` form."""

from __future__ import annotations

from rota.coordinator.log.properties import (
    new_id,
    read_properties,
    read_topic_id,
    write_properties,
    write_topic_id,
)


def test_files_that_java_wrote_are_read() -> None:
    text = "#\n#Sat Nov 21 12:12:27 UTC 2026\nnode.id=0\n! old\n cluster.id = BYaad79FSWynoixyAXfUMQ==\n\nnothing\n"
    assert read_properties(text) == {"node.id": "0", "cluster.id": "BYaad79FSWynoixyAXfUMQ=="}


def test_written_properties_are_read_back() -> None:
    properties = {"version": "1", "cluster.id": "a=b"}
    assert read_properties(write_properties(properties)) == properties


def test_topic_ids_in_kafkas_form() -> None:
    assert read_topic_id(b"version: 0\ntopic_id: nOYW8peSRC6_qbYEGBDJFA") == bytes.fromhex(
        "9ce616f29792442ebfa9b6041810c914"
    )
    assert read_topic_id(write_topic_id(bytes(range(16)))) == bytes(range(16))
    for damaged in (b"", b"version: 0\n", b"version: 0\ntopic_id: x", b"version: 0\ntopic_id: \xff"):
        assert read_topic_id(damaged) is None


def test_new_ids_are_safe_on_a_command_line() -> None:
    ids = {new_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(len(text) == 22 and text[0] != "-" for text in ids)
