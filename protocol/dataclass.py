"""`dataclass`: the decorator of the standard library, for slotted classes, in a fraction of its time.

The standard decorator compiles up to six functions for each class. A broker defines 200 classes before it listens:
that was a third of its start. Here `__init__`, `__repr__`, `__eq__` and `__hash__` are made when they are first looked
up, and the `__init__` of a frozen class sets its slots without `object.__setattr__`. See ADR 15.

Law
    P3  A class that is declared with it behaves as one of `dataclasses.dataclass`: instances, errors, comparison, hash,
        representation, pickle, `fields`, `replace` and pattern matching are the same.
"""

from __future__ import annotations

import abc
import dataclasses
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any


def _dataclass(
    declared: type[Any] | None = None,
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    repr: bool = True,  # noqa: A002 - the name in the standard library
    order: bool = False,
) -> Any:
    """Return the class, as `dataclasses.dataclass` makes it. Raises TypeError as that does."""

    def define(cls: type[Any]) -> type[Any]:
        is_script = cls.__module__ == "__main__"  # Spark pickles such a class with its code, which has no slots then
        if order or not slots or is_script or any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:]):
            standard = dataclasses.dataclass(frozen=frozen, slots=slots, kw_only=kw_only, eq=eq, repr=repr, order=order)
            return standard(cls)
        return _defined(cls, frozen, kw_only, eq, repr)

    return define if declared is None else define(declared)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - a type checker sees an export
else:
    dataclass = _dataclass


def _defined(declared: type[Any], frozen: bool, kw_only: bool, eq: bool, representation: bool) -> type[Any]:
    if declared.__doc__ is None:
        declared.__doc__ = declared.__name__  # the standard decorator would inspect the signature for a text
    collected: Any = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(declared)
    parameters = collected.__dataclass_params__
    parameters.init, parameters.repr, parameters.eq, parameters.frozen = True, representation, eq, frozen
    if sys.version_info >= (3, 12):
        parameters.slots = True
    all_fields = dataclasses.fields(collected)
    names = [each.name for each in all_fields]
    _refuse_init_only(collected, len(names))
    _refuse_order(all_fields)
    namespace = dict(collected.__dict__)
    if frozen:
        _add_frozen(namespace, declared.__name__)
    wanted = ("__init__", "__repr__") if representation else ("__init__",)
    compiled = [name for name in wanted if name not in namespace]
    if eq:
        compiled += _comparison(namespace, frozen)
    namespace |= {name: _Uncompiled() for name in compiled}
    cls: type[Any] = _slotted(collected, namespace, names)
    return abc.update_abstractmethods(cls)


def _comparison(namespace: dict[str, Any], frozen: bool) -> list[str]:
    """The functions of a comparable class that have to be made; one that is not frozen has no hash, as a list."""
    has_eq = "__eq__" in namespace
    made = [] if has_eq else ["__eq__"]
    if "__hash__" in namespace and not (has_eq and namespace["__hash__"] is None):  # Python adds None beside an __eq__
        return made
    if frozen:
        return [*made, "__hash__"]
    namespace["__hash__"] = None
    return made


def _refuse_init_only(cls: Any, field_count: int) -> None:
    if len(cls.__dataclass_fields__) == field_count:
        return
    for each in cls.__dataclass_fields__.values():
        if "InitVar" in str(each.type):
            raise TypeError(f"{cls.__name__}.{each.name} is an InitVar: use dataclasses.dataclass")


def _slotted(cls: type[Any], namespace: dict[str, Any], names: list[str]) -> Any:
    """The class again, with slots. As in the standard library the first one remains without use."""
    if "__slots__" in namespace:
        raise TypeError(f"{cls.__name__} already specifies __slots__")
    declared = [base.__dict__.get("__slots__", ()) for base in cls.__mro__[1:-1]]
    inherited = {slot for slots in declared for slot in ((slots,) if isinstance(slots, str) else slots)}
    namespace["__slots__"] = tuple(name for name in names if name not in inherited)
    for name in (*names, "__dict__", "__weakref__"):
        namespace.pop(name, None)
    metaclass: Any = type(cls)
    slotted = metaclass(cls.__name__, cls.__bases__, namespace)
    slotted.__qualname__ = cls.__qualname__
    return slotted


# ---- functions that are the same for all classes


def _add_frozen(namespace: dict[str, Any], class_name: str) -> None:
    for name in ("__setattr__", "__delattr__"):
        if name in namespace:
            raise TypeError(f"Cannot overwrite attribute {name} in class {class_name}")
    namespace |= {"__setattr__": _refuse_change, "__delattr__": _refuse_removal}
    namespace.setdefault("__getstate__", _state)
    namespace.setdefault("__setstate__", _set_state)


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _refuse_change(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_removal(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


# ---- functions that are made when they are needed


class _Uncompiled:
    """An attribute of a class that is replaced by the function of its name when it is first looked up."""

    __slots__ = ("_cls", "_name")

    def __set_name__(self, cls: type[Any], name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        cls, name = self._cls, self._name
        made = _MAKERS[name](cls, dataclasses.fields(cls))
        made.__qualname__ = f"{cls.__qualname__}.{name}"
        if cls.__dict__[name] is self:
            setattr(cls, name, made)
        return made.__get__(instance, owner)


class _Factory:
    """The default of a parameter whose field has a factory, as `inspect` shows it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _compiled(cls: Any, head: str, lines: list[str], names: dict[str, Any]) -> Any:
    """A function of the class's module that knows these names, too."""
    text = f"def make({', '.join(names)}):\n def {head}:\n  " + "\n  ".join(lines) + f"\n return {head.split('(')[0]}"
    module, found = sys.modules.get(cls.__module__), dict[str, Any]()
    exec(text, {} if module is None else module.__dict__, found)  # noqa: S102 - as the standard library: names of fields
    return found["make"](**names)


def _representation(cls: Any, all_fields: tuple[Field[Any], ...]) -> Any:
    """A child that has no representation of its own shows the fields of `cls` alone."""
    names = [each.name for each in all_fields if each.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807 - its name
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    __repr__.__module__ = cls.__module__
    return __repr__


def _compiled_eq(cls: Any, all_fields: tuple[Field[Any], ...]) -> Any:
    compared = [each.name for each in all_fields if each.compare]
    if sys.version_info >= (3, 13):  # since then a NaN makes two instances different
        is_same = "self is other or " + (" and ".join(f"self.{name} == other.{name}" for name in compared) or "True")
    else:
        is_same = f"({_values('self', compared)}) == ({_values('other', compared)})"
    line = f"return ({is_same}) if other.__class__ is self.__class__ else NotImplemented"
    return _compiled(cls, "__eq__(self, other)", [line], {})


def _compiled_hash(cls: Any, all_fields: tuple[Field[Any], ...]) -> Any:
    hashed = [each.name for each in all_fields if (each.compare if each.hash is None else each.hash)]
    return _compiled(cls, "__hash__(self)", [f"return hash(({_values('self', hashed)}))"], {})


def _values(owner: str, names: list[str]) -> str:
    return "".join(f"{owner}.{name}," for name in names)


def _refuse_order(all_fields: tuple[Field[Any], ...]) -> None:
    has_default = False
    for each in all_fields:
        if not each.init or each.kw_only:
            continue
        if each.default is not MISSING or each.default_factory is not MISSING:
            has_default = True
        elif has_default:
            raise TypeError(f"non-default argument {each.name!r} follows default argument")


def _compiled_init(cls: Any, all_fields: tuple[Field[Any], ...]) -> Any:
    names: dict[str, Any] = {"__missing__": _FACTORY}
    frozen = cls.__dataclass_params__.frozen
    owner = "__self__" if any(each.name == "self" for each in all_fields) else "self"
    lines = [line for each in all_fields for line in _assignment(cls, owner, each, frozen, names)]
    if hasattr(cls, "__post_init__"):
        lines.append(f"{owner}.__post_init__()")
    positional = [_parameter(each, names) for each in all_fields if each.init and not each.kw_only]
    keywords = [_parameter(each, names) for each in all_fields if each.init and each.kw_only]
    parameters = ", ".join([owner, *positional, *(["*", *keywords] if keywords else [])])
    init = _compiled(cls, f"__init__({parameters})", lines or ["pass"], names)
    init.__annotations__ = {each.name: each.type for each in all_fields if each.init} | {"return": None}
    return init


def _parameter(each: Field[Any], names: dict[str, Any]) -> str:
    if each.default_factory is not MISSING:
        return f"{each.name}=__missing__"
    if each.default is MISSING:
        return each.name
    names[f"__default_{each.name}__"] = each.default
    return f"{each.name}=__default_{each.name}__"


def _assignment(cls: Any, owner: str, each: Field[Any], frozen: bool, names: dict[str, Any]) -> list[str]:
    name, value = each.name, each.name
    if each.default_factory is not MISSING:
        names[f"__make_{name}__"] = each.default_factory
        made = f"__make_{name}__()"
        value = f"{made} if {name} is __missing__ else {name}" if each.init else made
    elif not each.init:
        if each.default is MISSING:
            return []
        value = f"__default_{name}__"
        names[value] = each.default
    if not frozen:
        return [f"{owner}.{name} = {value}"]
    names[f"__set_{name}__"] = getattr(cls, name).__set__
    return [f"__set_{name}__({owner}, {value})"]


_MAKERS: dict[str, Callable[[Any, tuple[Field[Any], ...]], Any]] = {
    "__init__": _compiled_init,
    "__repr__": _representation,
    "__eq__": _compiled_eq,
    "__hash__": _compiled_hash,
}
