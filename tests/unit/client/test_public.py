"""What `rota.client` exports: all of it, nothing else, typed and documented. A change here is a change for users."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import rota.client

HERE = Path(rota.client.__file__)
CONSTANTS = {
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Headers",
    "ConsumerRecord",
}  # the last: a compiled class has no docstring
FACADES = {
    "Consumer": {
        "assign",
        "assignment",
        "beginning_offsets",
        "close",
        "commit",
        "commit_soon",
        "committed",
        "config",
        "delivered_offsets",
        "end_offsets",
        "enforce_rebalance",
        "from_properties",
        "getmany",
        "getone",
        "group",
        "lag",
        "offsets_for_times",
        "partitions_for",
        "pause",
        "paused",
        "position",
        "resume",
        "seek",
        "seek_to_beginning",
        "seek_to_end",
        "seek_to_time",
        "start",
        "state",
        "subscribe",
        "subscription",
        "topics",
        "unsubscribe",
    },
    "Producer": {
        "abort_transaction",
        "begin_transaction",
        "close",
        "commit_transaction",
        "flush",
        "from_properties",
        "is_abort_pending",
        "is_commit_pending",
        "partitions_for",
        "prepare_transaction",
        "send",
        "send_rows",
        "send_and_wait",
        "send_offsets",
        "start",
        "transaction",
    },
    "Admin": {
        "alter_configs",
        "alter_group_offsets",
        "close",
        "create_partitions",
        "create_topics",
        "delete_group_offsets",
        "delete_groups",
        "delete_records",
        "delete_topics",
        "describe_cluster",
        "describe_configs",
        "describe_groups",
        "describe_topics",
        "elect_leaders",
        "from_properties",
        "group_lag",
        "list_group_offsets",
        "list_groups",
        "list_offsets",
        "list_topics",
        "remove_members",
        "reset_group_offsets",
        "start",
    },
    "PartitionReader": {
        "brokers",
        "fetch",
        "fetch_raw",
        "from_properties",
        "leader",
        "offset_at",
        "partitions",
        "read",
        "topic_id",
    },
    "Delivery": {"add_done_callback", "done", "result"},
}


def declared() -> set[str]:
    """What a type checker sees."""
    (block,) = [item for item in ast.parse(HERE.read_text()).body if isinstance(item, ast.If)]
    return {alias.name for item in block.body if isinstance(item, ast.ImportFrom) for alias in item.names}


def test_exported_names_equal_the_declared_ones() -> None:
    assert set(rota.client.__all__) == declared() == set(dir(rota.client)) == set(rota.client._MODULES)


@pytest.mark.parametrize("name", rota.client.__all__)
def test_each_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(rota.client, name)
    assert name in CONSTANTS or inspect.getdoc(value)


def test_an_unknown_name_raises_with_the_known_names() -> None:
    with pytest.raises(AttributeError, match=r"rota\.client has no Konsumer; it has .*Consumer"):
        _ = rota.client.Konsumer


@pytest.mark.parametrize("name", FACADES)
def test_a_facade_has_these_methods_typed_and_documented(name: str) -> None:
    kind = getattr(rota.client, name)
    public = {item for item in dir(kind) if not item.startswith("_")}
    assert public == FACADES[name]
    for item in public:
        member = inspect.getattr_static(kind, item)
        called = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        assert inspect.getdoc(called), item
        untyped = [p.name for p in inspect.signature(called).parameters.values() if p.annotation is p.empty]
        assert set(untyped) <= {"self", "cls"}, item
        assert inspect.signature(called).return_annotation is not inspect.Signature.empty, item


def test_errors_have_one_root() -> None:
    errors = [getattr(rota.client, item) for item in rota.client.__all__]
    for item in errors:
        if inspect.isclass(item) and issubclass(item, Exception):
            assert issubclass(item, rota.client.KafkaError)


def test_the_package_is_typed_and_light() -> None:
    assert HERE.with_name("py.typed").exists()
    code = "import rota.client, sys; print([one for one in sys.modules if one.startswith('rota.client.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
