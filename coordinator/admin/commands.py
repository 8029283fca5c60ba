"""The command line with help and completion, on typer. `cli.main` uses it for everything except a plain `serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from rota.coordinator.admin.options import ServeOptions
from rota.coordinator.admin.plain import DEFAULT_ADDRESS, run_check, run_demo
from rota.coordinator.admin.version import version_line

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
    environment: Annotated[bool, typer.Option("--environment", help="Read variables KAFKA_NODE_ID, …")] = False,
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
    brokers: Annotated[int | None, typer.Option(metavar="N", help="A cluster of N broker processes here.")] = None,
    store: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Where --brokers serves the metadata.")] = None,
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

    own = tuple(settings or ())
    options = ServeOptions(data, memory, environment, config, listen, own, preset, brokers, store, ready_fd)
    options.log_format, options.log_level = log_format, log_level
    raise typer.Exit(run(options))


@app.command()
def demo() -> None:
    """Show a broker and a consumer group at work: members join, one crashes, the broker is killed and comes back.

    Takes 15 seconds, a free port and a temporary folder. Uses the client libraries that are installed.
    """
    run_demo()


@app.command()
def version() -> None:
    """Print the version, whether the codecs are compiled, and which event loop the broker uses."""
    print(version_line())


@app.command()
def check(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where the broker listens.")] = DEFAULT_ADDRESS,
) -> None:
    """Print whether a broker answers there; the exit code is 0 when it does, else 1."""
    raise typer.Exit(run_check(address))
