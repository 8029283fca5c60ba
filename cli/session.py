"""Runs the coroutine of one command: its clients, its output, its exit code.

Laws
    An exit code says what kind of failure it was: EXIT_CODES is the list, docs/COMMANDS.md prints it.
    A failure is one message on standard error, without a traceback; a fault of Rota has one. An argument that is not
    UTF-8 is such a failure, unless it is a path or the bytes of a record.
    A command against an address at which nothing listens fails as soon as all addresses have refused it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rota.cli.output import Output, print_error
from rota.cli.secret_names import is_secret
from rota.cli.settings import UsageError, config_of, read_settings
from rota.client.errors import AdminFailed, BrokerError, ConfigError, IllegalUse, KafkaError, TimedOut, Unreachable
from rota.client.types import address_text
from rota.transport.standard_streams import EXIT_BROKEN_PIPE, EXIT_INTERRUPTED, discard

if TYPE_CHECKING:
    from rota.client import Admin, ClientConfig
    from rota.client.network.cluster import Cluster

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_UNREACHABLE, EXIT_TIMED_OUT = 0, 1, 2, 3, 4
EXIT_HUNG_UP, EXIT_TERMINATED = 129, 143
EXIT_CODES: Final = {
    EXIT_OK: "done",
    EXIT_FAILED: "the cluster refused it, a part of it failed, or the output is full; what was done is printed",
    EXIT_USAGE: "an option, an argument, a settings file or a line of input is not valid",
    EXIT_UNREACHABLE: "no broker answers at the given addresses",
    EXIT_TIMED_OUT: "a broker did not answer in time, see --timeout",
    EXIT_HUNG_UP: "the terminal was closed (SIGHUP); a member has left its group",
    EXIT_INTERRUPTED: "Ctrl-C",
    EXIT_BROKEN_PIPE: "the reader of the output has gone, as in `rota … | head`",
    EXIT_TERMINATED: "SIGTERM; a member has left its group",
}
CONNECT_S: Final = 3.0  # for the first connection to one of the addresses
# what error messages of the client advise, as a command
COMMANDS_FOR_CALLS: Final = {
    "list_topics()": "`rota topics list`",
    "list_groups()": "`rota groups list`",
    "describe_groups()": "`rota groups describe`",
    "describe_configs()": "`rota configs describe`",
    "remove_members()": "`rota groups remove-members`",
}
PATH_OPTIONS: Final = ("file", "command_config")
CommandBody = Callable[["Session"], Awaitable[int | None]]


class Session:
    """One run of a command: its options, its output, the settings of its clients."""

    def __init__(self, options: Namespace, out: Output) -> None:
        self.options, self.out = options, out
        self.stopped_by: int | None = None  # the first signal

    def settings(self) -> dict[str, str]:
        """Return the client's settings by Kafka's names. Raises UsageError."""
        given = self.options
        settings = read_settings(
            os.environ,
            bootstrap=given.bootstrap_server,
            file=given.command_config,
            properties=given.command_property or (),
            timeout_s=given.timeout,
        )
        for name, value in settings.items():
            _require_utf8(f"the setting {name}", value, is_shown=not is_secret(name))
        return settings

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[Admin]:
        """Yield a started admin client. Raises UsageError, ConfigError, Unreachable."""
        from rota.client import Admin, AdminConfig

        config = config_of(AdminConfig, self.settings())
        await self.require_listener(config)
        async with Admin(config) as admin:
            yield admin

    @asynccontextmanager
    async def cluster(self) -> AsyncIterator[Cluster]:
        """Yield what sends requests that `Admin` has no method for. Raises as `admin`."""
        from rota.client import AdminConfig
        from rota.client.network.cluster import Cluster

        config = config_of(AdminConfig, self.settings())
        await self.require_listener(config)
        cluster = Cluster(config)
        await cluster.start()
        try:
            yield cluster
        finally:
            await cluster.close()

    async def require_listener(self, config: ClientConfig) -> None:
        """Return when one of the addresses accepts a connection. Raises Unreachable, which names all."""
        await require_listener(config.bootstrap)

    def error(self, message: str, exit_code: int) -> None:
        """Print an error on standard error; the command goes on."""
        print_error(message, as_json=self.options.json, exit_code=exit_code)


async def require_listener(addresses: tuple[tuple[str, int], ...]) -> None:
    """Return when one of the addresses accepts a connection within CONNECT_S. Raises Unreachable, which names all."""
    attempts = [asyncio.create_task(_connect(*address)) for address in addresses]
    reasons = []
    try:
        for attempt in asyncio.as_completed(attempts):
            reason = await attempt
            if reason is None:
                return
            reasons.append(reason)
    finally:
        for task in attempts:
            task.cancel()
    raise Unreachable(
        f"no broker answers: {'; '.join(reasons)}. Name a broker that runs with --bootstrap-server HOST:PORT, or "
        "start one with `rota serve`"
    )


async def _connect(host: str, port: int) -> str | None:
    """Return None when the address accepts a connection, else why not."""
    at = address_text(host, port)
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(host, port)
        writer.close()
    except TimeoutError:
        return f"{at}: no answer within {CONNECT_S:.0f} s"
    except UnicodeError:
        return f"{at}: not a name of a host"
    except OSError as failure:
        return f"{at}: {os.strerror(failure.errno) if failure.errno and failure.errno > 0 else failure}"
    return None


def client_command(body: CommandBody) -> Callable[[Namespace], int]:
    """Return the `run` of a command: a function of the options that returns the exit code."""
    return partial(run_command, body)


def run_command(body: CommandBody, options: Namespace) -> int:
    """Run the coroutine of a command; print its failure; return the exit code."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    _configure_logging(options.verbose)
    session = Session(options, Output(sys.stdout, as_json=options.json))
    try:
        with asyncio.Runner() as runner:
            code = runner.run(_result(body, session))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except asyncio.CancelledError:
        return EXIT_HUNG_UP if session.stopped_by == signal.SIGHUP else EXIT_TERMINATED
    except BrokenPipeError:
        discard(sys.stdout)
        return EXIT_BROKEN_PIPE
    except (UsageError, KafkaError) as failure:
        return _report(failure, as_json=options.json)
    except ExceptionGroup as failures:
        known = failures.subgroup((UsageError, KafkaError))
        if known is None:
            raise
        return _report(_first_leaf(known), as_json=options.json)
    return code or EXIT_OK


async def _result(body: CommandBody, session: Session) -> int | None:
    _cancel_on_signals(session)
    any_bytes = {*PATH_OPTIONS, *getattr(session.options, "bytes_options", ())}
    for name, value in vars(session.options).items():
        if name not in any_bytes:
            _require_utf8(name.replace("_", "-"), value)
    return await body(session)


def _cancel_on_signals(session: Session) -> None:
    """End the command in order at SIGTERM, and when its terminal is closed, unless `nohup` started it."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def received(number: int) -> None:
        if session.stopped_by is None or number != signal.SIGHUP:  # the kernel and a shell may both say SIGHUP
            session.stopped_by = session.stopped_by or number
            task.cancel()

    with suppress(ValueError, RuntimeError, NotImplementedError):  # in a thread, or where there are no signals
        loop.add_signal_handler(signal.SIGTERM, received, signal.SIGTERM)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, received, signal.SIGHUP)


def _require_utf8(name: str, value: object, *, is_shown: bool = True) -> None:
    """Raises UsageError for a text with bytes that are not UTF-8, which no request can contain."""
    if isinstance(value, list | tuple):
        for each in value:
            _require_utf8(name, each)
    elif isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise UsageError(f"{name}: {value!r} is not UTF-8" if is_shown else f"{name} is not UTF-8")


def _report(failure: BaseException, *, as_json: bool) -> int:
    code = exit_code_of(failure)
    message = str(failure)
    for call, command in COMMANDS_FOR_CALLS.items():
        message = message.replace(call, command)
    print_error(message, as_json=as_json, exit_code=code, codes=_codes(failure))
    return code


def exit_code_of(failure: BaseException) -> int:
    """Return the exit code of a failure."""
    match failure:
        case UsageError() | ConfigError() | IllegalUse():
            return EXIT_USAGE
        case AdminFailed():
            causes = {exit_code_of(error) for error in failure.failed.values()}
            return causes.pop() if len(causes) == 1 and not failure.done else EXIT_FAILED
        case Unreachable():
            return EXIT_UNREACHABLE
        case TimedOut():
            return EXIT_TIMED_OUT
        case _:
            return EXIT_FAILED


def _codes(failure: BaseException) -> tuple[str, ...]:
    if isinstance(failure, AdminFailed):
        return tuple(sorted(code.name for code in failure.codes))
    return (failure.code.name,) if isinstance(failure, BrokerError) else ()


def _first_leaf(failure: BaseException) -> BaseException:
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


def _configure_logging(verbose: bool) -> None:
    import logging

    logging.basicConfig(level=logging.DEBUG if verbose else logging.CRITICAL, stream=sys.stderr)


def as_plain(value: Any) -> Any:
    """Return a value of the client as JSON has it: ids of topics as Kafka prints them, tuples as lists."""
    if isinstance(value, bytes):
        from base64 import urlsafe_b64encode

        return urlsafe_b64encode(value).decode().rstrip("=")
    return list(value) if isinstance(value, tuple | set | frozenset) else value
