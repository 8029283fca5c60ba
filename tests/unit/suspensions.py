"""Cancel a coroutine or a task at each of its suspension points: before its first step, at its first await, at its
second, … until it ends by itself.

    async for result in each_suspension(lambda: consumer.commit()):
        ...  # what holds after each cancellation
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import coroutine
from typing import Any

TEN_S = 10
BEFORE_THE_FIRST_STEP = -1


@coroutine
def cancelled_at(work: Coroutine[Any, Any, Any], suspension: int, reached: list[int], times: int = 1) -> Any:
    """Run the coroutine in the current task, which is cancelled when the coroutine suspends for the nth time, and at
    the next `times` - 1 suspensions."""
    go_on: Callable[[], Any] = partial(work.send, None)
    for number in count():
        try:
            waits_for = go_on()
        except StopIteration as end:
            return end.value
        if suspension <= number < suspension + times:
            reached.append(number)
            asyncio.current_task().cancel()  # type: ignore[union-attr]
        try:
            value = yield waits_for
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is the coroutine's
            go_on = partial(work.throw, error)
        else:
            go_on = partial(work.send, value)


async def cancel(work: Coroutine[Any, Any, Any], suspension: int, times: int = 1) -> tuple[bool, Any]:
    """Whether the work suspended so often, and was cancelled there (and at the next `times` - 1 suspensions); its
    result if it had one all the same."""
    reached: list[int] = []
    if suspension == BEFORE_THE_FIRST_STEP:
        task = asyncio.ensure_future(work)
        task.cancel()
        reached.append(suspension)
    else:
        task = asyncio.ensure_future(_awaited(cancelled_at(work, suspension, reached, times)))
    done, _ = await asyncio.wait({task}, timeout=TEN_S)
    assert done, f"does not end when it is cancelled at await {suspension}"
    return bool(reached), None if task.cancelled() else task.result()


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


async def each_suspension(work: Callable[[], Coroutine[Any, Any, Any]]) -> AsyncIterator[Any]:
    """Cancel the work before its first step, then at its first await, at its second, … until it has no more. Yields
    the result of each try, None where there was none."""
    for suspension in count(BEFORE_THE_FIRST_STEP):
        reached, result = await cancel(work(), suspension)
        yield result
        if not reached:
            return


@contextmanager
def task_cancelled_at(qualname: str, nth: int, suspension: int) -> Iterator[list[int]]:
    """Cancel the nth task whose coroutine has that name at its suspension. What is yielded is empty until then."""
    reached: list[int] = []
    loop, numbers = asyncio.get_running_loop(), count()

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> asyncio.Task[Any]:
        is_it = getattr(work, "__qualname__", "") == qualname and next(numbers) == nth
        if is_it and suspension != BEFORE_THE_FIRST_STEP:
            work = _awaited(cancelled_at(work, suspension, reached))
        task = asyncio.Task(work, loop=loop, **more)
        if is_it and suspension == BEFORE_THE_FIRST_STEP:
            reached.append(suspension)
            task.cancel()
        return task

    loop.set_task_factory(factory)  # type: ignore[arg-type]
    try:
        yield reached
    finally:
        loop.set_task_factory(None)


def tasks_of_ours() -> set[asyncio.Task[Any]]:
    """The tasks of the code under test: not the test's, not the scripted brokers'."""
    current = asyncio.current_task()
    return {
        task for task in asyncio.all_tasks() if task is not current and "_serve" not in task.get_coro().__qualname__
    }


STARTS = {"create_task", "ensure_future", "run_shielded", "_spawn"}


def started_in(*folders: Path) -> set[str]:
    """What the functions of the modules start as tasks: methods of the same class by name, else the function itself."""
    return set[str]().union(*(_started(path.read_text()) for folder in folders for path in folder.rglob("*.py")))


def _started(source: str) -> set[str]:
    found: set[str] = set()

    def visit(node: ast.AST, cls: str, function: str) -> None:
        if isinstance(node, ast.ClassDef):
            cls = f"{node.name}."
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = function or cls + node.name
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in STARTS:
            match node.args[0]:
                case ast.Call(func=ast.Attribute(value=ast.Name("self"), attr=method)):
                    found.add(cls + method)
                case _:
                    found.add(function)
        for child in ast.iter_child_nodes(node):
            visit(child, cls, function)

    visit(ast.parse(source), "", "")
    return found
