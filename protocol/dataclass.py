"""`dataclass`: the decorator of the standard library, for slotted classes, in a fraction of its time.

The standard decorator compiles up to six functions for each class. A broker defines 200 classes before it listens:
that was a third of its start. Here `__init__`, `__eq__` and `__hash__` are compiled when they are first called, and the
`__init__` of a frozen class sets its slots without `object.__setattr__`. See ADR 15.

Law
    P3  A class that is declared with it behaves as one of `dataclasses.dataclass`: instances, errors, comparison, hash,
        representation, pickle, `fields`, `replace` and pattern matching are the same.
"""

from __future__ import annotations

import dataclasses
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
        if order or not slots or any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:]):
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
    all_fields = dataclasses.fields(collected)
    _refuse_init_only(collected, len(all_fields))
    _refuse_order(all_fields)
    namespace = dict(collected.__dict__)
    if representation:
        namespace.setdefault("__repr__", _representation([each.name for each in all_fields if each.repr]))
    if frozen:
        _add_frozen(namespace, declared.__name__, [each.name for each in all_fields])
    compiled = ["__init__"] if "__init__" not in namespace else []
    if eq:
        compiled += _comparison(namespace, frozen)
    cls: type[Any] = _slotted(collected, namespace, [each.name for each in all_fields])
    for name in compiled:
        setattr(cls, name, _compiled_at_first_call(cls, name, all_fields, frozen))
    return cls


def _comparison(namespace: dict[str, Any], frozen: bool) -> list[str]:
    """The functions of a comparable class that have to be made; one that is not frozen has no hash, as a list."""
    has_eq, has_hash = "__eq__" in namespace, "__hash__" in namespace
    if has_hash and not (has_eq and namespace["__hash__"] is None):  # Python adds None to a class with __eq__
        return [] if has_eq else ["__eq__"]
    if not frozen:
        namespace["__hash__"] = None
    made = [] if has_eq else ["__eq__"]
    return [*made, "__hash__"] if frozen else made


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
    inherited = {slot for base in cls.__mro__[1:-1] for slot in base.__dict__.get("__slots__", ())}
    namespace["__slots__"] = tuple(name for name in names if name not in inherited)
    for name in (*names, "__dict__", "__weakref__"):
        namespace.pop(name, None)
    metaclass: Any = type(cls)
    slotted = metaclass(cls.__name__, cls.__bases__, namespace)
    slotted.__qualname__ = cls.__qualname__
    return slotted


# ---- functions that are the same for all classes


def _representation(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def representation(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return representation


def _add_frozen(namespace: dict[str, Any], class_name: str, names: list[str]) -> None:
    for name in ("__setattr__", "__delattr__"):
        if name in namespace:
            raise TypeError(f"Cannot overwrite attribute {name} in class {class_name}")
    namespace |= {"__setattr__": _refuse_change, "__delattr__": _refuse_removal}
    namespace.setdefault("__getstate__", lambda self: [getattr(self, name) for name in names])

    def set_state(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    namespace.setdefault("__setstate__", set_state)


def _refuse_change(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_removal(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


# ---- functions that are compiled


def _compiled_at_first_call(cls: Any, name: str, all_fields: tuple[Field[Any], ...], frozen: bool) -> Any:
    """A function that replaces itself by the compiled one of that name."""

    def first_call(self: Any, *arguments: Any, **named: Any) -> Any:
        function = _COMPILERS[name](cls, all_fields, frozen)
        function.__qualname__ = first_call.__qualname__
        if cls.__dict__[name] is first_call:
            setattr(cls, name, function)
        return function(self, *arguments, **named)

    first_call.__name__, first_call.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return first_call


def _compiled(text: str, names: dict[str, Any]) -> Any:
    exec(text, names)  # noqa: S102 - as the standard library does it: the text has names of fields only
    return names["made"]


def _compiled_eq(cls: Any, all_fields: tuple[Field[Any], ...], frozen: bool) -> Any:
    compared = [each.name for each in all_fields if each.compare]
    is_same = f"({_values('self', compared)}) == ({_values('other', compared)})"
    return _compiled(
        f"def made(self, other):\n return {is_same} if other.__class__ is self.__class__ else NotImplemented", {}
    )


def _compiled_hash(cls: Any, all_fields: tuple[Field[Any], ...], frozen: bool) -> Any:
    hashed = [each.name for each in all_fields if (each.compare if each.hash is None else each.hash)]
    return _compiled(f"def made(self):\n return hash(({_values('self', hashed)}))", {})


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


def _compiled_init(cls: Any, all_fields: tuple[Field[Any], ...], frozen: bool) -> Any:
    names: dict[str, Any] = {"_missing": MISSING}
    lines = [line for each in all_fields for line in _assignment(cls, each, frozen, names)]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    positional = [_parameter(each, names) for each in all_fields if each.init and not each.kw_only]
    keywords = [_parameter(each, names) for each in all_fields if each.init and each.kw_only]
    parameters = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    body = "\n ".join(lines or ["pass"])
    init = _compiled(f"def made({parameters}):\n {body}", names)
    init.__name__ = "__init__"
    init.__annotations__ = {each.name: each.type for each in all_fields if each.init} | {"return": None}
    return init


def _parameter(each: Field[Any], names: dict[str, Any]) -> str:
    if each.default_factory is not MISSING:
        return f"{each.name}=_missing"
    if each.default is MISSING:
        return each.name
    names[f"_default_{each.name}"] = each.default
    return f"{each.name}=_default_{each.name}"


def _assignment(cls: Any, each: Field[Any], frozen: bool, names: dict[str, Any]) -> list[str]:
    name, value = each.name, each.name
    if each.default_factory is not MISSING:
        names[f"_make_{name}"] = each.default_factory
        value = f"_make_{name}() if {name} is _missing else {name}" if each.init else f"_make_{name}()"
    elif not each.init:
        if each.default is MISSING:
            return []
        names[f"_default_{name}"] = each.default
        value = f"_default_{name}"
    if not frozen:
        return [f"self.{name} = {value}"]
    names[f"_set_{name}"] = getattr(cls, name).__set__
    return [f"_set_{name}(self, {value})"]


_COMPILERS: dict[str, Callable[[Any, tuple[Field[Any], ...], bool], Any]] = {
    "__init__": _compiled_init,
    "__eq__": _compiled_eq,
    "__hash__": _compiled_hash,
}
