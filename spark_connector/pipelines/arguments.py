"""The arguments that every pipeline has: brokers, folders, and the settings of the client.

Laws
    A setting of --option takes precedence over the same setting of --command-config.
    Values from the file of --command-config, which has secrets, are in no message.
    A secret is refused among the arguments, which every user of the machine can read, and which Spark's UI shows.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, Final

from rota.spark_connector.errors import OptionError
from rota.spark_connector.secret_options import is_secret
from rota.transport.properties_file import FileRefused, load_properties

KAFKA: Final = "kafka."
_IN_A_YEAR: Final = {
    "second": 31_536_000,
    "minute": 525_600,
    "hour": 8_760,
    "day": 365,
    "week": 52,
    "month": 12,
    "year": 1,
}
_INTERVAL: Final = re.compile(rf"\d{{1,9}} ({'|'.join(_IN_A_YEAR)})s?")


def common_parser(name: str, description: str, output: str) -> argparse.ArgumentParser:
    """A parser with the common arguments; `output` describes --output."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT", help="brokers, separated by commas")
    parser.add_argument("--output", required=True, metavar="PATH", help=output)
    parser.add_argument("--checkpoint", default="", metavar="PATH", help="the checkpoint folder (OUTPUT/_checkpoint)")
    parser.add_argument("--starting", default="earliest", help="earliest, latest or JSON (%(default)s)")
    parser.add_argument(
        "--command-config", default="", metavar="FILE", help="client settings (TLS, SASL) as Java properties"
    )
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="an option of format('rota')"
    )
    return parser


def checkpoint_path(output: str, checkpoint: str) -> str:
    """The folder of the checkpoint: that of --checkpoint, else one in the output folder."""
    return checkpoint or f"{output}/_checkpoint"


def source_options(bootstrap_servers: str, topics: str, starting: str) -> dict[str, str]:
    """The options of the source that every pipeline sets: committed records of these topics."""
    return {
        "kafka.bootstrap.servers": bootstrap_servers,
        "kafka.isolation.level": "read_committed",
        "subscribe": topics,
        "startingOffsets": starting,
    }


def parse_common(parser: argparse.ArgumentParser, arguments: list[str]) -> dict[str, Any]:
    """The parsed arguments; `options` has those of --command-config and --option. Exits with the reason of an error."""
    given = vars(parser.parse_args(arguments))
    file, pairs = given.pop("command_config"), given.pop("option")
    if not given["output"]:
        parser.error("--output: it must be a folder or URL; without a name the tables would be in the root folder")
    try:
        settings = load_properties(file) if file else {}
    except (FileRefused, OSError) as error:
        parser.error(f"--command-config: {error}")
    options = {KAFKA + name: value for name, value in settings.items() if name != "bootstrap.servers"}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            parser.error(f"--option {pair}: it must be NAME=VALUE, as in maxOffsetsPerTrigger=100000")
        if is_secret(name):
            parser.error(
                f"--option {name}: process arguments are no place for a secret; write {name.removeprefix(KAFKA)} into "
                "the file of --command-config"
            )
        options[name] = value
    return {**given, "options": options}


def interval(option: str, text: str, years_max: int | None = None) -> str:
    """`text`, as in 1 day. Raises OptionError when it is not an interval of Spark, or longer than so many years."""
    if not _INTERVAL.fullmatch(text):
        raise OptionError(option, text, "a number and a unit, as in 1 day or 90 minutes")
    number, unit = text.removesuffix("s").split()
    if years_max is not None and int(number) > years_max * _IN_A_YEAR[unit]:
        raise OptionError(option, text, f"at most {years_max} years, as in 1 day or 90 minutes")
    return text


def secret_of(parser: argparse.ArgumentParser, option: str, file: str) -> str:
    """The text of a file, "" for none. Exits with the reason of an error, without any of its bytes."""
    try:
        return Path(file).read_text(encoding="utf-8").strip() if file else ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        parser.error(f"{option} {file}: it must be a file that can be read ({why})")
