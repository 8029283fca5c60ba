"""Readers and writers on their way to an executor, whose Python may lack the package.

Laws
    Where the package or one of its dependencies cannot be imported, the task fails with an error that says what is
    missing, in which Python of which machine, and what to do. Spark shows it on the driver.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final

from pyspark import cloudpickle

_dumps: Final[Any] = cloudpickle.dumps  # it has no annotations


class Shipped:
    """Pickled with cloudpickle, as Spark does, it is unpickled by a function that needs nothing of the package."""

    def __reduce__(self) -> tuple[Any, ...]:
        return UNPICKLE, (type(self).__module__, type(self).__qualname__, _dumps(self.__dict__))


def _unpickle(module: str, name: str, state: bytes) -> Any:
    import importlib
    import pickle
    import platform
    import sys

    try:
        kind = getattr(importlib.import_module(module), name)
        fields = pickle.loads(state)
    except ImportError as error:
        raise RuntimeError(
            f"format('rota') cannot run on this executor: {error}. {sys.executable} on {platform.node()} needs the "
            f'package: pip install "rota[spark]" there, or ship an environment with spark.archives and set '
            f"PYSPARK_PYTHON to its interpreter, as docs/SPARK.md shows under Cluster"
        ) from None
    made = kind.__new__(kind)
    made.__dict__.update(fields)
    return made


# cloudpickle pickles a function of __main__ as code, and one of a module as the name of the module
UNPICKLE: Final = FunctionType(_unpickle.__code__, {"__builtins__": __builtins__, "__name__": "__main__"}, "unpickle")
UNPICKLE.__module__ = "__main__"
