"""The `.properties` form."""

from __future__ import annotations

from rota.coordinator.log.properties import read_properties, write_properties


def test_what_java_writes_is_read() -> None:
    text = "#\n#Sat Nov 21 12:12:27 UTC 2026\nnode.id=0\n! old\n cluster.id = BYaad79FSWynoixyAXfUMQ==\n\nnothing\n"
    assert read_properties(text) == {"node.id": "0", "cluster.id": "BYaad79FSWynoixyAXfUMQ=="}


def test_what_is_written_is_read() -> None:
    properties = {"version": "1", "cluster.id": "a=b"}
    assert read_properties(write_properties(properties)) == properties
