"""Law P3: a class of `rota.protocol.dataclass` behaves as one of `dataclasses`, whatever its fields are."""

from __future__ import annotations

import abc
import dataclasses
import inspect
import pickle
import subprocess
import sys
import typing
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import examples

from rota.protocol import dataclass as quick

DECORATORS = (quick.dataclass, dataclasses.dataclass)
NAMES = ("alpha", "beta", "gamma", "delta")
VALUES = st.integers(0, 2) | st.just(float("nan")) | st.lists(st.integers(0, 1), max_size=1)
OPTIONS = st.fixed_dictionaries({}, optional={name: st.booleans() for name in ("frozen", "eq", "repr", "kw_only")})


@st.composite
def declarations(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """The arguments of `field` of each field; those with a default mostly come last."""
    found = {}
    for name in draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]:
        flags = {flag: False for flag in ("compare", "repr", "init") if draw(st.integers(0, 4)) == 0}
        flags |= draw(st.sampled_from([{}, {"default": 7}, {"default_factory": list}]))
        flags |= draw(st.sampled_from([{}, {}, {"hash": True}, {"hash": False}, {"kw_only": True}]))
        found[name] = flags
    if draw(st.integers(0, 9)):
        found = dict(sorted(found.items(), key=lambda item: has_default(item[1])))
    return found


def has_default(flags: dict[str, Any]) -> bool:
    return "default" in flags or "default_factory" in flags


@st.composite
def arguments(draw: st.DrawFn, declared: dict[str, dict[str, Any]]) -> tuple[dict[str, Any], int]:
    """Values by name, mostly all that are needed, and how many of them are given by position."""
    names = [name for name, flags in declared.items() if flags.get("init", True)]
    given_names = [name for name in names if not has_default(declared[name]) or draw(st.booleans())]
    if not draw(st.integers(0, 9)):
        given_names = draw(st.permutations([*names, "epsilon"]))[:2]
    return {name: draw(VALUES) for name in given_names}, draw(st.sampled_from([0, 0, 1, 2]))


def define(decorator: Any, declared: dict[str, dict[str, Any]], extra: dict[str, Any], options: dict[str, Any]) -> Any:
    """The class, or the type of the error with which it cannot be defined."""
    namespace: dict[str, Any] = {"__annotations__": dict.fromkeys(declared, "object"), "__module__": __name__, **extra}
    namespace |= {name: dataclasses.field(**flags) for name, flags in declared.items() if flags}
    try:
        return decorator(slots=True, **options)(type("Made", (), namespace))
    except (TypeError, ValueError) as refused:
        return type(refused)


def outcome(call: Callable[[], Any]) -> Any:
    """What it returns, or its error; instances as their class's name and the values that are set."""
    try:
        found = call()
    except (TypeError, AttributeError, dataclasses.FrozenInstanceError) as error:
        return type(error), str(error).split("Made")[-1]
    return state(found) if dataclasses.is_dataclass(found) else found


def state(instance: Any) -> dict[str, str]:
    return {name: repr(getattr(instance, name, "unset")) for name in NAMES}


def own_repr(self: Any) -> str:
    return "own"


def own_eq(self: Any, other: Any) -> bool:
    return True


def own_hash(self: Any) -> int:
    return 3


def own_post_init(self: Any) -> None:
    if getattr(self, "alpha", None):
        raise AttributeError("refused by __post_init__")


EXTRAS: tuple[dict[str, Any], ...] = (
    {},
    {"__repr__": own_repr},
    {"__eq__": own_eq},
    {"__hash__": own_hash},
    {"__eq__": own_eq, "__hash__": own_hash},
    {"__post_init__": own_post_init},
)


@settings(max_examples=examples(150))
@given(declarations(), st.sampled_from(EXTRAS), OPTIONS, st.data())
def test_p3_both_decorators_make_the_same_class(
    declared: dict[str, dict[str, Any]], extra: dict[str, Any], options: dict[str, Any], data: st.DataObject
) -> None:
    own, standard = (define(decorator, declared, extra, options) for decorator in DECORATORS)
    if not dataclasses.is_dataclass(standard):
        assert own == standard
        return
    assert repr(dataclasses.fields(own)) == repr(dataclasses.fields(standard))
    assert own.__match_args__ == standard.__match_args__
    assert own.__slots__ == standard.__slots__
    assert repr(own.__dataclass_params__) == repr(standard.__dataclass_params__)
    both = [data.draw(arguments(declared)) for _ in range(2)]
    pairs = [tuple(made(cls, named, count) for named, count in both) for cls in (own, standard)]
    assert [outcome(each) for each in pairs[0]] == [outcome(each) for each in pairs[1]]
    assert actions(*pairs[0], [*declared]) == actions(*pairs[1], [*declared])


def made(cls: Any, named: dict[str, Any], count: int) -> Callable[[], Any]:
    """A call that makes an instance, with the first arguments by position."""
    values = list(named.items())
    return lambda: cls(*(value for _, value in values[:count]), **dict(values[count:]))


def actions(first: Callable[[], Any], second: Callable[[], Any], names: list[str]) -> list[Any]:
    """What instances do. The standard library has no error of its own for other names than those of fields."""
    try:
        one, same, other = first(), first(), second()
    except (TypeError, AttributeError):
        return []

    def change() -> None:
        for name in names:
            setattr(one, name, 5)

    def remove() -> None:
        for name in names:
            delattr(one, name)

    return [
        outcome(lambda: one == same),
        outcome(lambda: one == other),
        outcome(lambda: one != other),
        outcome(lambda: one == object()),
        type(one).__hash__ is object.__hash__ or outcome(lambda: hash(one)),
        type(one).__repr__ is object.__repr__ or outcome(lambda: repr(one).split("Made")[-1]),
        outcome(lambda: dataclasses.replace(one)),
        [name for name in names if getattr(one, name, one) is getattr(same, name, same)],
        outcome(change),
        outcome(remove),
        state(one),
    ]


@quick.dataclass(frozen=True, slots=True)
class Pickled:
    """A frozen class that a process sends to another."""

    name: str
    sizes: list[int] = dataclasses.field(default_factory=list)


class Sized(Protocol):
    """Something with a property, as protocols that classes implement."""

    kind: ClassVar[str]

    def size(self) -> int: ...


def test_an_instance_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled("a", [1]))) == Pickled("a", [1])


def test_patterns_and_class_variables() -> None:
    @quick.dataclass(frozen=True, slots=True)
    class Box(Sized):
        kind: ClassVar[str] = "box"
        width: int

        def size(self) -> int:
            return self.width

    match Box(3):
        case Box(width):
            assert width == 3
    assert (Box(3).size(), Box.kind, [each.name for each in dataclasses.fields(Box)]) == (3, "box", ["width"])


@pytest.mark.parametrize("decorator", DECORATORS)
def test_the_signature_is_known_before_the_first_instance(decorator: Any) -> None:
    @decorator(frozen=True, slots=True)
    class Box:
        width: int
        self: int = 3
        sizes: list[int] = dataclasses.field(default_factory=list)

    class Own(Box):
        def __init__(self, name: str) -> None:
            super().__init__(1, 2)

    assert str(inspect.signature(Own)) == "(name: 'str') -> 'None'"
    assert str(inspect.signature(Box)) == "(width: 'int', self: 'int' = 3, sizes: 'list[int]' = <factory>) -> None"
    assert typing.get_type_hints(Box.__init__) == {"width": int, "self": int, "sizes": list[int], "return": type(None)}
    assert Box.__init__.__module__ == __name__
    assert str(inspect.signature(Own)) == "(name: 'str') -> 'None'"
    assert (Own("a").self, Box(1, 4).self) == (2, 4)


def test_a_function_is_compiled_when_it_is_first_looked_up() -> None:
    @quick.dataclass(slots=True)
    class Box:
        width: int

    class Own(Box):
        __slots__ = ()

    assert not inspect.isfunction(vars(Box)["__init__"])
    assert (Own(1).width, Own(1) == Own(1)) == (1, True)
    assert vars(Box)["__init__"] is Box.__init__
    assert not {"__init__", "__eq__"} & vars(Own).keys()


def test_a_thread_that_looked_up_a_function_while_another_one_made_it_replaces_nothing() -> None:
    @quick.dataclass(slots=True)
    class Box:
        width: int

    looked_up, box = vars(Box)["__init__"], Box(1)
    made = Box.__init__
    looked_up.__get__(box, Box)(2)
    assert (box.width, vars(Box)["__init__"]) == (2, made)


@pytest.mark.parametrize("decorator", DECORATORS)
def test_a_child_without_a_representation_of_its_own_shows_the_fields_of_its_parent(decorator: Any) -> None:
    @decorator(slots=True)
    class Box:
        width: int
        sealed: bool = dataclasses.field(default=True, repr=False)

    @dataclasses.dataclass(slots=True, repr=False)
    class Crate(Box):
        height: int = 3

    assert repr(Crate(1)).endswith("Crate(width=1)")
    assert (Box.__repr__.__module__, Box.__repr__.__qualname__) == (__name__, f"{Box.__qualname__}.__repr__")


@pytest.mark.parametrize("decorator", DECORATORS)
def test_made_functions_implement_abstract_ones(decorator: Any) -> None:
    class Shape(abc.ABC):
        @abc.abstractmethod
        def __init__(self, width: int) -> None: ...

        @abc.abstractmethod
        def __hash__(self) -> int: ...

    @decorator(frozen=True, slots=True)
    class Box(Shape):
        width: int

    assert Box(3) == Box(3)
    assert hash(Box(3)) == hash(Box(3))


@pytest.mark.parametrize("decorator", DECORATORS)
def test_a_slot_of_a_base_can_be_one_text(decorator: Any) -> None:
    named: Any = type("Named", (), {"__slots__": "name"})
    namespace = {"__annotations__": {"name": str, "count": int}, "__module__": __name__}
    box = decorator(slots=True)(type("Made", (named,), namespace))
    assert box.__slots__ == ("count",)
    assert (box("a", 1).name, box("a", 1).count) == ("a", 1)


@pytest.mark.parametrize("decorator", DECORATORS)
def test_a_class_of_a_script_is_pickled_with_its_code(decorator: Any) -> None:
    """As Spark does it for `python -m rota.spark_connector.pipelines.ingest`, whose classes are of `__main__`."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    namespace = {"__annotations__": {"a": int, "b": int}, "b": 4, "__module__": "__main__"}
    made = decorator(frozen=True, slots=True)(type("Made", (), namespace))
    data = cloudpickle.dumps([made(1), made])
    script = "import pickle, sys; one, made = pickle.load(sys.stdin.buffer); print(one, one == made(1), made(2).b)"
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, check=False)
    assert (done.stdout.decode().strip(), done.stderr.decode()) == ("Made(a=1, b=4) True 4", "")


def test_a_subclass_of_a_dataclass_is_one_of_the_standard_library() -> None:
    @quick.dataclass(frozen=True, slots=True)
    class Longer(Pickled):
        count: int = 0

    assert Longer("a", [], 2) == Longer("a", [], 2) != Longer("a", [], 3)
    assert repr(Longer("a")).endswith("Longer(name='a', sizes=[], count=0)")


@pytest.mark.parametrize("decorator", DECORATORS)
def test_slots_cannot_be_declared_twice(decorator: Any) -> None:
    with pytest.raises(TypeError, match="already specifies __slots__"):
        decorator(slots=True)(type("Made", (), {"__slots__": ("a",), "__annotations__": {"a": "int"}}))


def test_an_init_only_field_is_refused() -> None:
    namespace = {"__annotations__": {"a": dataclasses.InitVar[int]}, "__module__": __name__}
    with pytest.raises(TypeError, match="is an InitVar: use"):
        quick.dataclass(slots=True)(type("Made", (), namespace))
