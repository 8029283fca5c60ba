"""Names are the words of the field: an engineer who knows Kafka never has to learn ours.

Every name that the code defines is split into its words, and no word may be one of BANNED. ALLOWED are names that
cannot change, because a protocol, a metric, a setting or another library has them, with the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.unit.architecture.test_tidy import PACKAGES, ROOT, named, sources, tree_of

FOLDERS = (*PACKAGES, "tools", "benchmarks", "tests")
# words, and what the field says instead
BANNED = {
    **dict.fromkeys(("ask", "asks", "asked", "asking"), "request, requests, requested, pending"),
    **dict.fromkeys(("said", "say", "says"), "text, output, message, error, fields; log, send"),
    **dict.fromkeys(("tell", "tells", "told", "telling"), "send, notify; response, answered, notified"),
    **dict.fromkeys(("hear", "hears", "heard"), "receive, received, response"),
    **dict.fromkeys(("talk", "talks", "speak", "speaks", "narrate", "narrates"), "send, log, emit"),
    **dict.fromkeys(("ring", "rings", "alarm", "alarms"), "timer; fire, fires"),
    **dict.fromkeys(("beat", "beats", "beaten"), "heartbeat, heartbeats"),
    **dict.fromkeys(("hush", "choke", "choked"), "silence; pause, paused"),
    **dict.fromkeys(("story", "stories", "scene", "scenes"), "scenario, run, configuration text"),
    **dict.fromkeys(("stranger", "strangers"), "unknown, unsupported version"),
    **dict.fromkeys(("nobody", "everybody"), "no member, all members, all users"),
    **dict.fromkeys(("came", "went", "gone"), "received; left, removed, deleted, closed, expired"),
    **dict.fromkeys(("born",), "created"),
    **dict.fromkeys(("wish", "wishes"), "subscription, requested"),
    **dict.fromkeys(("hurry", "hurries"), "flushing"),
    **dict.fromkeys(("road", "roads"), "connection, broker state"),
    **dict.fromkeys(("doubt", "doubts"), "maybe_written, unknown"),
    **dict.fromkeys(
        ("verdict", "verdicts", "judge", "judges", "judged", "judging", "settling"), "response, result, decision"
    ),
    **dict.fromkeys(("whom",), "member, principal"),
    **dict.fromkeys(("news",), "changes, changed"),
    **dict.fromkeys(("trouble", "troubles"), "error, failure, fault"),
    "may": "is_... or has_...: is_sendable, is_read_allowed",
    **dict.fromkeys(("leaver", "leavers"), "member, member identity"),
}
# several ordinary words together
BANNED_PHRASES = {
    **dict.fromkeys(("hang_up", "hangs_up"), "close, disconnect"),
    "start_afresh": "restart, truncate_fully",
    "try_later": "RetryLater",
}
ALLOWED = {
    "NOBODY_REJOINED": "type 7 of the events of the timeline, by which programs read it (docs/TIMELINE.md)",
}
FOREIGN = {  # names in docstrings that are not ours
    "partitionFor": "a method of Kafka's group coordinator",
    "trim": "a method of Java's String",
    "from_protobuf": "a function of PySpark",
    "extension_NAME": "an option of Java's OAuthBearerLoginModule, with any NAME",
}
_DOCSTRING = re.compile(r'"""[^"]*(?:"(?!"")[^"]*)*"""')
_QUOTED_NAME = re.compile(r"`([a-z_]\w{3,})(?:\(\))?`", re.ASCII)
_STRING_OR_COMMENT = re.compile(
    r'"""[^"]*(?:"(?!"")[^"]*)*"""|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|' + r"'[^'\\\n]*(?:\\.[^'\\\n]*)*'|#[^\n]*", re.DOTALL
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def field_word(name: str) -> str | None:
    """What the field says instead of a name; None: it is allowed. Names of tests are sentences."""
    if name in ALLOWED or name.startswith(("test_", "Test")):
        return None
    words = [word.lower() for word in _WORD.findall(name)]
    phrases = ("_".join(pair) for pair in pairwise(words))
    return next(filter(None, [*map(BANNED.get, words), *map(BANNED_PHRASES.get, phrases)]), None)


def names_in(text: str) -> set[str]:
    """The names outside strings (f-strings too) and comments. Only files with a banned one among them are parsed."""
    return set(_NAME.findall(_STRING_OR_COMMENT.sub("", text)))


def definitions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The names that a file defines: functions, classes, arguments, and variables and attributes that are assigned."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=str(name)) | ast.AsyncFunctionDef(name=str(name)) | ast.ClassDef(name=str(name)):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def offenders(texts: dict[Path, str]) -> list[str]:
    """FILE:LINE: NAME, and the field's word, for each definition with a banned word."""
    names = {path: names_in(text) for path, text in texts.items()}
    banned = {name: word for name in set().union(*names.values()) if (word := field_word(name))}
    return [
        f"{named(path)}:{line}: {name}: the field says: {banned[name]}"
        for path in texts
        if not names[path].isdisjoint(banned)
        for line, name in definitions(tree_of(path))
        if name in banned
    ]


def test_every_name_is_a_word_of_the_field() -> None:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(paths) > 1_500
    found = offenders({path: path.read_text() for path in paths})
    assert not found, "\n" + "\n".join(found)


def unknown_names(texts: dict[Path, str]) -> list[str]:
    """FILE: NAME for each name in backticks of a docstring that no code has: a rename has left it behind."""
    code = (_NAME.findall(_DOCSTRING.sub("", text)) for text in texts.values())  # with strings: names of topics
    known = {*FOREIGN, *(path.stem for path in texts)}.union(*code)
    return [
        f"{named(path)}: {name}"
        for path, text in texts.items()
        for docstring in _DOCSTRING.findall(text)
        for name in _QUOTED_NAME.findall(docstring)
        if name not in known
    ]


def test_docstrings_name_what_the_code_has() -> None:
    found = unknown_names({path: path.read_text() for path in sources()})
    assert not found, "\n" + "\n".join(found)


def test_a_name_that_was_left_behind_is_found() -> None:
    path = ROOT / "client/errors.py"
    assert unknown_names({path: 'def owner():\n    """Call `owner` or `errors()`."""\n'}) == []
    assert unknown_names({path: 'def owner():\n    """Call `owners`."""\n'}) == ["client/errors.py: owners"]


def test_every_exception_is_still_needed() -> None:
    text = "\n".join(path.read_text() for folder in PACKAGES for path in (ROOT / folder).rglob("*.py"))
    assert [name for name in (*ALLOWED, *FOREIGN) if name not in text] == []


@pytest.mark.parametrize(
    "code",
    [
        "def hears(): ...",
        "async def _say_again(): ...",
        "class HangUp: ...",
        "def f(*, asked): ...",
        "def f(**told): ...",
        "heard_ms = 1",
        "self._storyLine = 1",
        "SAID: str",
        "for beat in (): ...",
        "with f() as (a, road): ...",
        "import news_of as f, f as news",
        "try: ...\nexcept E as trouble: ...",
        "match a:\n    case B(c=whom): ...",
        "(nobody := 1)",
        "class TryLater: ...",
        "def may_found(): ...",
    ],
)
def test_a_definition_with_a_banned_word_is_found(code: str) -> None:
    assert [name for _, name in definitions(ast.parse(code)) if field_word(name)]


@pytest.mark.parametrize(
    "code",
    ["def test_what_is_said(): ...", "spring, heartbeat, task, basket = 1, 2, 3, 4", "said.decode()", "f(asked=1)"],
)
def test_uses_and_names_of_tests_are_no_definitions_and_parts_of_words_are_no_words(code: str) -> None:
    assert not [name for _, name in definitions(ast.parse(code)) if field_word(name)]


def test_prose_is_not_parsed() -> None:
    assert names_in('"""Who is "told"."""\nname = "said\\"" + f()  # asked\nother = \'#"\'\ntold = 1\n') == {
        "name",
        "f",
        "other",
        "told",
    }
