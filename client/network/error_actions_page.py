"""What an error code means for whoever asked: one table of (API, code), rendered into docs/CLIENT_ERRORS.md. Pure.

Laws
    Every code that an API of the client may answer with has a verdict (rules.py), the one that Kafka's Java client
    gives it; one that stands nowhere is RETRY when Kafka calls it retriable, FATAL otherwise.
    A code that this library does not know is UNKNOWN_SERVER_ERROR.

`python -m rota.client.network.error_actions_page` prints the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rota.client.network.error_actions import RULES, Rules, Verdict
from rota.protocol.errors import ErrorCode
from rota.protocol.registry import APIS

__all__ = ["TABLE", "Verdict", "verdict"]


def verdict(api: int, code: int) -> Verdict:
    """`api` is the API's key."""
    if code == 0:
        return Verdict.OK
    known = ErrorCode.of(code)
    return TABLE.get(api, {}).get(known) or (Verdict.RETRY if known.retriable else Verdict.FATAL)


def _merged(groups: tuple[Rules, ...]) -> dict[ErrorCode, Verdict]:
    """What stands later has the last word."""
    return {code: meaning for group in groups for meaning, codes in group.items() for code in codes}


_KEYS: Final = {api.name: api.key for api in APIS.values()}
TABLE: Final[dict[int, dict[ErrorCode, Verdict]]] = {_KEYS[name]: _merged(groups) for name, groups in RULES.items()}


def page() -> Iterator[str]:
    """The lines of docs/CLIENT_ERRORS.md."""
    yield from _HEAD
    yield from (f"| {one.name} | {one.value} |" for one in Verdict)
    for key in sorted(TABLE):
        yield from ("", f"## {APIS[key].name}", "", "| verdict | code | name | what the broker says with it |")
        yield "|---|---|---|---|"
        rows = sorted(TABLE[key].items(), key=lambda row: (_ORDER[row[1]], row[0]))
        yield from (f"| {found.name} | {int(code)} | {code.name} | {code.text} |" for code, found in rows)


_ORDER: Final = {one: at for at, one in enumerate(Verdict)}
_HEAD: Final = (
    "# What the client makes of error codes",
    "",
    "Rendered from `client/network/error_actions.py` by `python -m rota.client.network.error_actions_page`; a test",
    "keeps this page fresh. The",
    "verdicts are those of Kafka's Java client. A code that does not stand under its API is RETRY when Kafka calls it",
    "retriable, FATAL otherwise; a code that this library does not know is UNKNOWN_SERVER_ERROR.",
    "",
    "| verdict | what the client does |",
    "|---|---|",
)

if __name__ == "__main__":
    print("\n".join(page()))
