"""The options that several commands share, and the checks of their values."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, _SubParsersAction
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rota.cli.session import CommandBody, client_command
from rota.cli.settings import BOOTSTRAP_VARIABLE, CONFIG_VARIABLE, DEFAULT_ADDRESS
from rota.client.types import TopicPartition

TIMEOUT_S = 15.0
if TYPE_CHECKING:
    Subcommands = _SubParsersAction[ArgumentParser]


def subcommands(parser: ArgumentParser) -> Subcommands:
    """Add the place for subcommands; one of them is required."""
    return parser.add_subparsers(metavar="SUBCOMMAND", required=True, dest="subcommand")


def add_subcommand(commands: Subcommands, name: str, body: CommandBody, summary: str, **about: str) -> ArgumentParser:
    """Add a subcommand that talks to a cluster, with the options of all such commands."""
    parser: ArgumentParser = commands.add_parser(
        name, help=summary, description=about.get("description", summary[:1].upper() + summary[1:] + "."),
        epilog=about.get("epilog"), allow_abbrev=False,
    )  # fmt: skip
    add_client_options(parser)
    parser.set_defaults(run=client_command(body))
    return parser


def add_client_options(parser: ArgumentParser) -> None:
    """Add --bootstrap-server and the other options of a command that talks to a cluster."""
    group = parser.add_argument_group("connection and output")
    group.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help=f"brokers of the cluster, with commas; or {BOOTSTRAP_VARIABLE}; unset: {DEFAULT_ADDRESS}",
    )
    group.add_argument(
        "--command-config", metavar="FILE", help=f"the client's settings, as Java properties; or {CONFIG_VARIABLE}"
    )
    group.add_argument(
        "--command-property", metavar="NAME=VALUE", action="append", help="one setting; as often as needed"
    )
    group.add_argument(
        "--timeout", metavar="SECONDS", type=positive_float, default=TIMEOUT_S, help="of each call; default %(default)s"
    )
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("--verbose", action="store_true", help="print the client's log on standard error")


def whole(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return the parser of an integer from `low` to `high`, both included."""

    def parse(text: str) -> int:
        bounds = f"an integer of at least {low}" + ("" if high is None else f" and at most {high}")
        try:
            value = int(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not {bounds}") from None
        if value < low or (high is not None and value > high):
            raise ArgumentTypeError(f"{text} is not {bounds}")
        return value

    return parse


def one_of(names: Sequence[str]) -> Callable[[str], str]:
    """Return the parser of one of `names`, in any case."""
    by_lower_case = {name.lower(): name for name in names}

    def parse(text: str) -> str:
        name = by_lower_case.get(text.lower())
        if name is None:
            raise ArgumentTypeError(f"{text!r} is none of {', '.join(names)}")
        return name

    return parse


INT32_MAX: Final = (1 << 31) - 1  # broker ids and partitions are int32 in the protocol
INT64_MAX: Final = (1 << 63) - 1  # timestamps and offsets are int64 in the protocol; negative ones have other meanings


def group_id(text: str) -> str:
    """Return the id of a group, which has at least one character."""
    if not text:
        raise ArgumentTypeError("the empty text is no group id")
    return text


def positive_float(text: str) -> float:
    """Parse a number above 0 and below a day of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds above 0 and up to 86400")
    return value


def seconds_or_zero(text: str) -> float:
    """Parse 0, or a number of seconds as `positive_float`."""
    return 0.0 if text.strip("0.") == "" and "0" in text else positive_float(text)


def name_and_value(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def topic_and_partitions(text: str) -> str | list[TopicPartition]:
    """Parse TOPIC or TOPIC:0,1,2, Kafka's form."""
    topic, colon, numbers = text.partition(":")
    if not topic or (colon and not all(number.isdecimal() for number in numbers.split(","))):
        raise ArgumentTypeError(f"{text!r} is not TOPIC or TOPIC:PARTITION,PARTITION…")
    return [TopicPartition(topic, int(number)) for number in numbers.split(",")] if colon else topic


def time_ms(text: str) -> int:
    """Parse a time of ISO 8601 (UTC unless it names a zone), or milliseconds since the epoch; from 0 to INT64_MAX."""
    milliseconds = int(text) if text.isdecimal() else _iso_ms(text)
    if not 0 <= milliseconds <= INT64_MAX:
        raise ArgumentTypeError(f"{text!r} is not a time from 1970 to {INT64_MAX} milliseconds later")
    return milliseconds


def _iso_ms(text: str) -> int:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(
            f"{text!r} is not a time: write 2026-01-31T12:00:00, with +02:00 for a zone, or milliseconds since 1970"
        ) from None
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1000)


def iso_time(milliseconds: int | None) -> str | None:
    """Return a time as ISO 8601 in UTC with milliseconds; None for none, and the number beyond year 9999."""
    if milliseconds is None or milliseconds < 0:
        return None
    try:
        return (
            datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        )
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)
