"""A producer that was replaced while its transaction was open: all that it may ask for afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.interop.transaction_apis.scenario_client import Line, Producer, ScenarioClient

Act = Callable[[ScenarioClient, str, Producer], Line]


def _init(t: ScenarioClient, name: str, had: Producer) -> Line:
    line = t.init("zombie: InitProducerId", name, had)
    t.settle(name)
    return line


def _init_with_next_epoch(t: ScenarioClient, name: str, had: Producer) -> Line:
    return t.init("zombie: InitProducerId with the next epoch", name, (had[0], had[1] + 1))


def _end(committed: bool, version: int, ahead: int = 0) -> Act:
    def end(t: ScenarioClient, name: str, had: Producer) -> Line:
        step = f"zombie: EndTxn {committed}, epoch +{ahead}"
        return t.end(step, name, (had[0], had[1] + ahead), committed, version)

    return end


def _add(version: int) -> Act:
    def add(t: ScenarioClient, name: str, had: Producer) -> Line:
        return t.add("zombie: AddPartitionsToTxn", name, had, 1, version=version)

    return add


def _offsets(t: ScenarioClient, name: str, had: Producer) -> Line:
    return t.offsets("zombie: AddOffsetsToTxn", name, had)


ACTS: tuple[tuple[Act, ...], ...] = (
    (_init,),
    (_init, _init, _end(False, 5), _end(False, 5, 1)),
    (_init, _end(False, 5), _init),
    (_init, _end(True, 5), _end(True, 5, 1)),
    (_init_with_next_epoch,),
    (_init_with_next_epoch, _init),
    (_end(False, 5), _init),
    (_end(True, 5), _init),
    (_end(False, 4),),
    (_end(True, 4),),
    (_end(False, 5, 1), _end(False, 5, 1), _init),
    (_end(True, 5, 1),),
    (_end(False, 4, 1),),
    (_add(3), _add(5)),
    (_offsets,),
)


def replace_producers(t: ScenarioClient) -> Iterator[Line]:
    """`acts` of the first producer, when its transaction was aborted for a second one, and when that has its epoch."""
    for begins_at in (3, 5):
        for number, acts in enumerate(ACTS):
            for has_epoch in (False, True):
                name = f"zombie{begins_at}.{number}.{has_epoch}"
                had = t.new(name)
                yield t.add("begin", name, had, 0, version=begins_at)
                yield t.init("another producer", name)
                t.settle(name)
                if has_epoch:
                    yield t.init("another producer again", name)
                yield t.describe("before", name)
                for act in acts:
                    yield act(t, name, had)
                    yield t.describe("after", name)
                yield t.init("another producer again", name)
                t.settle(name)
                yield t.describe("at last", name)
