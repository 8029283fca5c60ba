"""docs/CLIENT.md: every recipe runs as a reader would run it, and prints what the page says."""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import re
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.unit.client.network.scripted import eventually

import rota.client
from rota.client import (
    Admin,
    AdminConfig,
    OffsetOutOfRange,
    Producer,
    ProducerConfig,
    TopicPartition,
    errors,
)
from rota.testing import running_broker

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "CLIENT.md").read_text()


class Recipe(NamedTuple):
    title: str
    code: str
    printed: str


RECIPES = [
    Recipe(*found)
    for found in re.findall(
        r"^## (\d+\. [^\n]+)\n.*?^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
    )
]


pytestmark = pytest.mark.timeout(60)


def run(code: str, broker: str) -> str:
    """What a program prints; what it leaves open in the end is a warning, which is an error."""
    printed = io.StringIO()
    names = {"__name__": "recipe", "print": partial(print, file=printed)}  # the broker's log goes elsewhere
    exec(compile(code.replace("127.0.0.1:9092", broker), "docs/CLIENT.md", "exec"), names)  # noqa: S102
    gc.collect()
    return printed.getvalue()


def test_there_are_ten_recipes() -> None:
    assert [int(recipe.title.split(".")[0]) for recipe in RECIPES] == list(range(1, 11))


@pytest.mark.parametrize("recipe", RECIPES, ids=[recipe.title for recipe in RECIPES])
def test_each_recipe_prints_the_output_of_the_page(
    recipe: Recipe, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(recipe.code, broker) == recipe.printed


AFTER_RETENTION = {  # what a recipe prints when it runs again, and retention has deleted all that it had written
    1: "orders-0 at offset 3\norders-0 at offset 4\norders-0 at offset 5\n",
    2: RECIPES[1].printed,
    3: "letters-0: next is 10, '5 mailed'\n",
    4: "sold in all: 1200\n",
    5: RECIPES[4].printed,
    6: 'since four: [b"4 o\'clock", b"5 o\'clock"]\nagain: b"0 o\'clock" next is 7\nat three: b"0 o\'clock"\n',
    7: RECIPES[6].printed,
    8: RECIPES[7].printed,
    9: "partitions: [0]\nleader: 0\noffset 3 of journal-0 is not in its log, which begins at 5 and ends at 10\n"
    "5 records, next is 10 of 10\n",
    10: RECIPES[9].printed.replace("7 of 10, 3 behind", "7 of 20, 13 behind").replace("moved to 3", "moved to 13"),
}


async def delete_all_records(broker: str) -> None:
    """Delete every record. Every group's offset, except for that of recipe 10, is of a record that is gone."""
    async with Admin(AdminConfig(bootstrap_servers=broker)) as admin:
        topics = await admin.describe_topics(list(await admin.list_topics()))
        partitions = [TopicPartition(name, of.partition) for name, topic in topics.items() for of in topic.partitions]
        await admin.delete_records(dict.fromkeys(partitions, -1))
        for group, offsets in (await admin.list_group_offsets(list(await admin.list_groups()))).items():
            await admin.alter_group_offsets(group, dict.fromkeys(offsets, 0))


def without_new_topics(code: str) -> str:
    """The program as it runs when its topics exist."""
    return re.sub(r"await admin.create_topics\(.*\)$", "pass  # they exist", code, flags=re.MULTILINE)


@pytest.mark.parametrize("recipe", RECIPES, ids=[recipe.title for recipe in RECIPES])
def test_a_recipe_runs_after_retention_has_deleted_all_records(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law C11."""
    monkeypatch.chdir(tmp_path)
    with running_broker() as running:
        broker = running.bootstrap_servers
        run(recipe.code, broker)
        asyncio.run(delete_all_records(broker))
        assert run(without_new_topics(recipe.code), broker) == AFTER_RETENTION[int(recipe.title.split(".")[0])]


EXACTLY_ONCE = next(recipe for recipe in RECIPES if recipe.title.startswith("4."))
AT_LEAST_ONCE = next(recipe for recipe in RECIPES if recipe.title.startswith("3."))


def defined(code: str, broker: str, topic: str) -> dict[str, Any]:
    """The names that a recipe defines, with a topic of the test's own; its main program does not run."""
    code = code.partition("asyncio.run(main())")[0].replace('"sales"', f'"{topic}"').replace("127.0.0.1:9092", broker)
    names: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(code, "docs/CLIENT.md", "exec"), names)  # noqa: S102
    return names


def sold(names: dict[str, Any]) -> int:
    return int(names["database"].execute("select cents from total").fetchone()[0])


async def produce(broker: str, topic: str, count: int) -> None:
    async with Producer(ProducerConfig(bootstrap_servers=broker)) as producer:
        for _ in range(count):
            await producer.send(topic, b"100")


async def cut(broker: str, topic: str, offset: int) -> None:
    """Delete the records before the offset, as retention does."""
    async with Admin(AdminConfig(bootstrap_servers=broker)) as admin:
        await admin.delete_records({TopicPartition(topic, 0): offset})


async def test_exactly_once_does_not_go_on_behind_records_that_retention_deleted(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = defined(EXACTLY_ONCE.code, broker, "sales-cut")
    with closing(names["database"]):
        await produce(broker, "sales-cut", 9)
        with pytest.raises(RuntimeError, match="the power fails"):
            await names["sell"](crash_after=4)
        await cut(broker, "sales-cut", 7)
        with pytest.raises(OffsetOutOfRange):
            await asyncio.wait_for(names["sell"](), 20)
        assert sold(names) == 400


async def test_exactly_once_begins_with_the_first_record_that_retention_left(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = defined(EXACTLY_ONCE.code, broker, "sales-begin")
    with closing(names["database"]):
        await produce(broker, "sales-begin", 10)
        await cut(broker, "sales-begin", 7)
        await asyncio.wait_for(names["sell"](), 20)
        assert sold(names) == 300


async def test_exactly_once_a_member_that_was_thrown_out_writes_nothing(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    thrown_out, owner = (defined(EXACTLY_ONCE.code, broker, "sales-fenced") for _ in range(2))
    with closing(thrown_out["database"]), closing(owner["database"]):
        await produce(broker, "sales-fenced", 5)
        selling = asyncio.create_task(thrown_out["sell"]())
        await eventually(lambda: sold(owner) == 500)
        assert owner["take_ownership"](TopicPartition("sales-fenced", 0)) == (2, 5)
        await produce(broker, "sales-fenced", 1)
        with pytest.raises(thrown_out["Fenced"]):
            await asyncio.wait_for(selling, 20)
        assert sold(owner) == 500


def test_at_least_once_continues_at_the_log_start_after_retention(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = AT_LEAST_ONCE.code.replace("letters", "cut-letters").replace('"post"', '"cut-post"')
    assert run(code, broker) == AT_LEAST_ONCE.printed.replace("letters", "cut-letters")
    asyncio.run(produce(broker, "cut-letters", 3))
    asyncio.run(cut(broker, "cut-letters", 8))
    assert run(code, broker) == "cut-letters-0: next is 13, '5 mailed'\n"


def test_the_first_lines_of_each_part_run(broker: str) -> None:
    start = PAGE.partition("## Three lines of each")[2].partition("\n# Ten recipes")[0].replace("orders", "three-lines")
    blocks = [block.splitlines() for block in re.findall(r"```python\n(.*?)```", start, re.DOTALL)]
    administer, write, read, _ = blocks
    everything = "{TopicPartition('three-lines', number): 0 for number in range(3)}"
    administer.insert(2, f"    await admin.alter_group_offsets('billing', {everything})")  # else it reads what comes
    write[1] = write[1].replace("key=", "partition=0, key=")
    read.append("        break")
    program = ["import asyncio", "from rota.client import *", "async def main():"]
    program += [f"    {line}" for block in blocks for line in block]
    printed = run("\n".join([*program, "asyncio.run(main())"]), broker).splitlines()
    assert "TopicListing(name='three-lines'" in printed[0]
    assert "RecordMetadata(topic='three-lines'" in printed[1]
    assert [line.partition(",")[0] for line in printed[2:]] == ["ConsumerRecord(three-lines-0@0"] * 2


def test_the_page_names_every_error() -> None:
    raised = {
        name for name, item in vars(errors).items() if isinstance(item, type) and item.__module__ == errors.__name__
    }
    answer = set(re.findall(r"`(\w+)`", PAGE.partition("## Errors")[2].partition("## Logging")[0]))
    assert not raised - answer
    assert {name for name in answer if name[0].isupper() and hasattr(errors, name)} <= set(rota.client.__all__)


def test_the_page_names_every_logger() -> None:
    sources = (ROOT / "client").rglob("*.py")
    loggers = {name for path in sources for name in re.findall(r"logger\(\"([\w.]+)\"\)", path.read_text())}
    answer = set(re.findall(r"`(rota\.client\.\w+)`", PAGE.partition("## Logging")[2].partition("## Cancellation")[0]))
    assert answer == loggers


def test_the_logging_example_enables_the_logger() -> None:
    code = re.findall(r"```python\n(.*?)```", PAGE.partition("## Logging")[2], re.DOTALL)[0]
    root, group = logging.getLogger(), logging.getLogger("rota.client.group")
    before, level = list(root.handlers), group.level
    try:
        exec(code, {})  # noqa: S102
        assert group.isEnabledFor(logging.INFO)
    finally:
        root.handlers[:] = before
        group.setLevel(level)
