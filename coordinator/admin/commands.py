"""The command line as people see it: help, completion, messages. `cli.main` comes here for all but a plain `serve`."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from typing import Annotated

import typer

from rota.coordinator.admin.options import ServeOptions

app = typer.Typer(
    name="rota",
    help="Rota: Kafka's consumer-group system. A broker that any Kafka client can talk to.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def rota() -> None:
    """Rota: Kafka's consumer-group system. A broker that any Kafka client can talk to."""


@app.command()
def serve(
    data: Annotated[str | None, typer.Option(metavar="DIR", help="Folder of the logs. Unset: rota-data.")] = None,
    memory: Annotated[bool, typer.Option("--memory", help="Keep everything in memory, nothing on disk.")] = False,
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Properties in Kafka's form and with Kafka's names.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where to listen; port 0 is any free one. Unset: 127.0.0.1:9092."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One property; as often as needed.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="dev: groups form at once. durable: every acknowledged batch is on the disk.")
    ] = None,
    ready_fd: Annotated[
        int | None, typer.Option(metavar="N", help="Write HOST:PORT to this file descriptor when ready.")
    ] = None,
    log_format: Annotated[str, typer.Option(help="auto, human or json; auto is human on a terminal.")] = "auto",
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Run a broker until SIGTERM or Ctrl-C; a second one ends it at once.

    Only this machine can reach it until --listen says otherwise: there is no authentication yet.
    """
    from rota.coordinator.admin.serve import run

    options = ServeOptions(data, memory, config, listen, tuple(settings or ()), preset, ready_fd, log_format, log_level)
    raise typer.Exit(run(options))


@app.command()
def version() -> None:
    """Print the version."""
    print(f"rota {installed('rota')}")


@app.command()
def check(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where the broker listens.")] = "127.0.0.1:9092",
) -> None:
    """Tell whether a broker answers there: exit code 0 when it does, 1 when not."""
    from rota.coordinator.admin.check import NotHealthy
    from rota.coordinator.admin.check import check as ask

    try:
        apis = ask(address)
    except NotHealthy as why:
        print(f"rota: {why}", file=sys.stderr)
        raise typer.Exit(1) from None
    print(f"a broker answers at {address}, with {apis} APIs")
