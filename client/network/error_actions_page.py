"""Renders docs/CLIENT_ERRORS.md from error_actions.py; `python -m rota.client.network.error_actions_page` prints it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rota.client.network.error_actions import TABLE, ErrorAction
from rota.protocol.registry import APIS


def page() -> Iterator[str]:
    """The lines of docs/CLIENT_ERRORS.md."""
    yield from _HEAD
    yield from (f"| {action.name} | {action.value} |" for action in ErrorAction)
    for key in sorted(TABLE):
        yield from ("", f"## {APIS[key].name}", "", "| action | code | name | what the broker says with it |")
        yield "|---|---|---|---|"
        rows = sorted(TABLE[key].items(), key=lambda row: (_ORDER[row[1]], row[0]))
        yield from (f"| {action.name} | {int(code)} | {code.name} | {code.text} |" for code, action in rows)


_ORDER: Final = {action: index for index, action in enumerate(ErrorAction)}
_HEAD: Final = (
    "# What the client does with error codes",
    "",
    "Rendered from `client/network/error_actions.py` by `python -m rota.client.network.error_actions_page`; a test",
    "keeps this page fresh. The actions are those of Kafka's Java client. A code that is not listed under its API is",
    "RETRY when Kafka calls it retriable, FATAL otherwise; a code that this library does not know is",
    "UNKNOWN_SERVER_ERROR.",
    "",
    "| action | what the client does |",
    "|---|---|",
)

if __name__ == "__main__":
    print("\n".join(page()))
