"""How a job ends with an error: one line that names the cause, as far as it is known, in place of a traceback.

Laws
    An error of Rota is one line with its message, also when it ended the query inside Spark. So is one of a file.
    Other errors of a query are raised, with all that is known of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import PySparkException, StreamingQueryException

from rota.spark_connector.errors import OptionError
from rota.transport import standard_streams

_OWN: Final = re.compile(r"^\s*rota\.[\w.]+: (.+)$", re.MULTILINE)  # the end of a traceback of Python in one of Java
_DISK: Final = "No space left on device|Disk quota exceeded|Read-only file system|Permission denied"
_FILE: Final = re.compile(rf"\bjava\.io\.\w+: (.*(?:{_DISK}).*)$", re.MULTILINE)


def exit_code(name: str, run: Callable[[], None]) -> int:
    """Run the job `name`, with its arguments, to its end; 2 after an error that is a line on the terminal. Raises
    others, and SystemExit for its arguments."""
    standard_streams.open_standard_streams()
    return standard_streams.exit_code(lambda: _exit_code(name, run), lambda why: _report(name, why))


def _report(name: str, why: str) -> None:
    standard_streams.print_on_stderr(f"{name}: {why}")


def _exit_code(name: str, run: Callable[[], None]) -> int:
    try:
        run()
    except (OptionError, OSError, PySparkException) as error:
        why = reason(error)
        if not why:
            raise
        _report(name, why)
        return 2
    return 0


def reason(error: Exception) -> str:
    """The line of an error; "": it is not known what to do."""
    if isinstance(error, (OptionError, OSError)):
        return "" if isinstance(error, ConnectionError) else str(error)  # a connection: that to Java
    if known := _OWN.findall(str(error)) or _FILE.findall(str(error)):
        return str(known[-1])
    is_of_query = isinstance(error, StreamingQueryException)
    return "" if is_of_query else next(filter(None, map(str.strip, str(error).splitlines())), "")


@contextmanager
def checked(option: str, value: str, expected: str) -> Iterator[None]:
    """Raise OptionError where Spark does not take the value of an option."""
    try:
        yield
    except Exception as error:
        # of Java alone, as of its regular expressions; a session of Spark Connect has no class for it
        if isinstance(error, PySparkException) or type(error).__name__ == "Py4JJavaError":
            raise OptionError(option, value, expected) from None
        raise
