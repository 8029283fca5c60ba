"""`rota serve`: one broker from start to stop.

Exit codes: 0 after a graceful stop, 2 when it cannot start (one line says why and what to do), 128 + the signal's
number when a second signal cuts the stop short, 1 when the stop could not put everything on the medium, and for
a fault of Rota. A terminal that is closed (SIGHUP) stops it as SIGTERM does, unless it was started by `nohup`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Protocol

from rota.coordinator.admin.options import OptionsRefused, ServeOptions
from rota.coordinator.admin.service_manager import ServiceManager
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.metadata.store import Store, StoreFailed
from rota.coordinator.network.open_files import raise_open_files_limit
from rota.coordinator.observe.logs import get_logger, print_error, writing_by_thread
from rota.transport.properties_file import FileRefused

EXIT_CANNOT_START = 2
EXIT_UNCLEAN_STOP = 1
# A request leaves no reference cycles (tests check it). With the default of 700 objects the collector would
# traverse the pending replies again and again, a sixth of the time of a commit, and find nothing.
GC_THRESHOLDS = 100_000, 50, 100
SUPERVISED_SESSION_MS = 500  # after a broker process has ended; while it lives, its connection does
SETTLE_S = 1.0  # after the first answers, which need not wait for it
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class ServedBroker(Protocol):
    """The parts of a broker that `serve` uses."""

    @property
    def console_url(self) -> str:
        """The URL of the console once it has started; empty without rota.http.listener."""

    async def start(self) -> tuple[str, int]:
        """Open the data and listen; return (host, port). Raises ConfigRefused, StorageFailed, StoreFailed, OSError."""

    async def stop(self) -> None:
        """Let requests under way finish, within rota.drain.timeout.ms; flush; mark the data as cleanly closed."""


def run(options: ServeOptions) -> int:
    """Serve until a stop signal; return the exit code."""
    try:
        options.check()
        config = options.broker_config()
        options.check_folder(config)
    except (OptionsRefused, ConfigRefused, FileRefused) as why:
        return cannot_start(str(why))
    except OSError as why:
        return cannot_start(f"cannot read {options.config}: {why.strerror}")
    raise_open_files_limit()
    with writing_by_thread(options.log_format, options.log_level):
        log = get_logger("rota.serve")
        for warning in config.warnings:
            log.warning("setting without effect", reason=warning)
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                return runner.run(_serve(options, config))
        except Exception as error:  # the interpreter would wait for a pipe that is not read
            log.critical("Internal error", exc_info=error)
            return EXIT_UNCLEAN_STOP


def _serve(options: ServeOptions, config: BrokerConfig) -> Coroutine[Any, Any, int]:
    """Create one broker, or the processes of several. Their modules are imported after the settings were read."""
    if options.brokers is not None and options.brokers > 1:
        return supervise(options, config)
    from rota.coordinator.broker import Broker

    if options.store is None:
        return serve(Broker(config, memory=options.memory), config, options.ready_fd)
    broker = Broker(config, memory=options.memory, open_store=_opener(options.store))
    return serve(broker, config, options.ready_fd, is_supervised=True)


def _opener(address: str) -> Callable[[], Awaitable[Store]]:
    async def open_store() -> Store:
        from rota.coordinator.metadata.socket_store import SocketStore

        store = SocketStore(address, session_timeout_ms=SUPERVISED_SESSION_MS)
        await store.open()
        return store

    return open_store


async def supervise(options: ServeOptions, config: BrokerConfig) -> int:
    """Serve several brokers, each in a process; return the exit code."""
    from rota.coordinator.admin.supervisor import CannotSupervise, Supervisor

    log, stopping, manager = get_logger("rota.serve"), asyncio.Event(), ServiceManager.from_environment(os.environ)
    _on_signals(partial(_stop, stopping, manager))

    def ready(addresses: str) -> None:
        log.info("listening", brokers=addresses)
        _write_ready(options.ready_fd, addresses)
        manager.ready(f"Listening on {addresses}")

    manager.starting()
    try:
        code = await Supervisor(options, config).run(ready, stopping)
    except (CannotSupervise, OptionsRefused, StoreFailed) as why:
        return cannot_start(str(why))
    except OSError as why:
        return cannot_start(_explain(why, config))
    finally:
        manager.close()
    log.info("stopped")
    return code


async def serve(
    broker: ServedBroker, config: BrokerConfig, ready_fd: int | None, *, is_supervised: bool = False
) -> int:
    """Start, report the address, stop on a signal or with the supervisor; return the exit code."""
    manager = ServiceManager.from_environment(os.environ)
    try:
        return await _serve_until_stopped(broker, config, ready_fd, manager, is_supervised=is_supervised)
    finally:
        manager.close()


async def _serve_until_stopped(
    broker: ServedBroker, config: BrokerConfig, ready_fd: int | None, manager: ServiceManager, *, is_supervised: bool
) -> int:
    log, stopping = get_logger("rota.serve"), asyncio.Event()
    _on_signals(partial(_stop, stopping, manager))
    if is_supervised:
        _on_end_of_input(stopping.set)
    manager.starting()
    try:
        host, port = await broker.start()
    except (ConfigRefused, StorageFailed, StoreFailed) as why:
        return cannot_start(str(why))
    except OSError as why:
        return cannot_start(_explain(why, config))
    asyncio.get_running_loop().call_later(SETTLE_S, configure_collector)
    log.info("listening", host=host, port=port)
    if broker.console_url:
        log.info("console", url=broker.console_url)
    report_ready(ready_fd, host, port)
    manager.ready(f"Listening on {_address(host, port)}")
    await stopping.wait()
    log.info("stopping", drain_ms=config.rota_drain_timeout_ms)
    try:
        await broker.stop()
    except (StorageFailed, StoreFailed) as why:
        log.error("stopped, but not in order: the next start recovers", reason=str(why))
        return EXIT_UNCLEAN_STOP
    log.info("stopped")
    return 0


def configure_collector() -> None:
    """Exclude the objects of the start from garbage collection, and collect less often from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


def report_ready(ready_fd: int | None, host: str, port: int) -> None:
    """Write `HOST:PORT` to the supervisor's file descriptor and close it."""
    _write_ready(ready_fd, _address(host, port))


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _write_ready(ready_fd: int | None, addresses: str) -> None:
    if ready_fd is None:
        return
    try:
        os.write(ready_fd, f"{addresses}\n".encode())
        if ready_fd > 2:
            os.close(ready_fd)
    except OSError as why:
        get_logger("rota.serve").warning("--ready-fd cannot be written", fd=ready_fd, reason=why.strerror)


def cannot_start(why: str) -> int:
    """Print the reason in one line; return the exit code."""
    print_error(f"rota: {why}")
    return EXIT_CANNOT_START


def _explain(why: OSError, config: BrokerConfig) -> str:
    text = str(why) if why.filename is not None or why.strerror is None else why.strerror
    if "in use" in text:
        return f"{text}; is another broker running? --listen HOST:PORT takes another port, and port 0 a free one"
    if isinstance(why, PermissionError):
        return f"{text}; choose another folder with --data, or another port with --listen"
    return text


def _stop(stopping: asyncio.Event, manager: ServiceManager) -> None:
    manager.stopping()
    stopping.set()


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def received(number: int) -> None:
        if seen:
            os._exit(128 + number)
        seen.append(number)
        stop()

    def hung_up() -> None:
        if not seen:  # the kernel and a shell may both say it: a second one cuts nothing short
            received(signal.SIGHUP)

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, received, number)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as it is under nohup
        loop.add_signal_handler(signal.SIGHUP, hung_up)


def _on_end_of_input(stop: Callable[[], None]) -> None:
    """Call `stop` when standard input ends: the supervisor holds its other end, and writes nothing."""
    loop = asyncio.get_running_loop()

    def ended() -> None:
        loop.remove_reader(0)
        stop()

    loop.add_reader(0, ended)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # not available on this platform
        return asyncio.new_event_loop
    return uvloop.new_event_loop
