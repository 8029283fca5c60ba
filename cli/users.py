"""`rota users`: list, add and remove SCRAM users, for Rota and Apache Kafka.

Law
    CU1 A password comes from a prompt, a file or standard input, never from an argument, which other processes see. It
        leaves this process salted and hashed, and is in no output.
"""

from __future__ import annotations

import secrets
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Final

from rota.cli.arguments import add_subcommand, subcommands
from rota.cli.session import Session
from rota.cli.settings import UsageError
from rota.cli.text import Table
from rota.client.errors import BrokerError
from rota.client.network.targets import AnyNode, Controller
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from rota.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from rota.protocol.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISM_TYPES,
    MECHANISMS,
    SALT_BYTES,
    Mechanism,
    salted_password,
)

PASSWORD_BYTES_MAX: Final = 4096
STDIN: Final = "-"


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the subcommands."""
    commands = subcommands(parser)
    add_subcommand(commands, "list", list_users, "list the SCRAM users, their mechanisms and iterations")
    add = add_subcommand(
        commands,
        "add",
        add_user,
        "create a SCRAM user, or give it another password",
        epilog="The password is asked for, or the first line of the file; it is never an argument.",
    )
    add.add_argument("user", metavar="NAME")
    _add_mechanisms(add)
    add.add_argument("--password-file", metavar="PATH", help="file with the password; - for standard input")
    add.add_argument("--iterations", type=_iterations, default=ITERATIONS_MIN, metavar="N", help="default %(default)s")
    remove = add_subcommand(commands, "remove", remove_user, "remove the credentials of a SCRAM user")
    remove.add_argument("user", metavar="NAME")
    _add_mechanisms(remove)


def _add_mechanisms(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--mechanism", action="append", choices=tuple(MECHANISMS), help="as often as needed; default: all"
    )


def _iterations(text: str) -> int:
    value = int(text)
    if not ITERATIONS_MIN <= value <= ITERATIONS_MAX:
        raise ValueError
    return value


# ---- the commands


async def list_users(session: Session) -> None:
    async with session.cluster() as cluster:
        users = await _describe(cluster, None)
    rows = [
        (user, each["mechanism"], each["iterations"]) for user, credentials in users.items() for each in credentials
    ]
    documents = [{"user": user, "credentials": credentials} for user, credentials in users.items()]
    session.out.show({"users": documents}, Table(("USER", "MECHANISM", "ITERATIONS"), rows, empty="no SCRAM users"))


async def add_user(session: Session) -> None:
    options, mechanisms = session.options, mechanisms_of(session.options)
    password = read_password(options)
    async with session.cluster() as cluster:
        for mechanism in mechanisms:  # a request names a user once
            upsertion = upsertion_of(options.user, mechanism, password, options.iterations)
            await _alter(cluster, AlterUserScramCredentialsRequest(upsertions=(upsertion,)), f"user {options.user!r}")
    _show(session, "added", mechanisms)


async def remove_user(session: Session) -> None:
    options = session.options
    what = f"user {options.user!r}"
    async with session.cluster() as cluster:
        found = {each["mechanism"] for each in (await _describe(cluster, options.user)).get(options.user, ())}
        mechanisms = [each for each in mechanisms_of(options) if options.mechanism or each.name in found]
        if not mechanisms:
            raise BrokerError(ErrorCode.RESOURCE_NOT_FOUND, what, detail="it has no SCRAM credentials")
        for mechanism in mechanisms:
            deletion = ScramCredentialDeletion(name=options.user, mechanism=mechanism.type)
            await _alter(cluster, AlterUserScramCredentialsRequest(deletions=(deletion,)), what)
    _show(session, "removed", mechanisms)


# ---- arguments and messages


def mechanisms_of(options: Namespace) -> list[Mechanism]:
    """Return the mechanisms of the arguments, each once."""
    return [MECHANISMS[name] for name in dict.fromkeys(options.mechanism or MECHANISMS)]


def read_password(options: Namespace) -> str:
    """CU1. Return the password from the file, from standard input, or from two prompts. Raises UsageError."""
    if options.password_file is None:
        return _prompt()
    try:
        if options.password_file == STDIN:
            text = sys.stdin.buffer.readline(PASSWORD_BYTES_MAX + 1)
        else:
            with Path(options.password_file).open("rb") as file:
                text = file.readline(PASSWORD_BYTES_MAX + 1)
        return _checked(text.decode().removesuffix("\n").removesuffix("\r"))
    except OSError as failure:
        raise UsageError(f"the password file cannot be read: {failure.strerror}") from failure
    except UnicodeDecodeError:
        raise UsageError("the password is not UTF-8") from None


def _prompt() -> str:
    from getpass import getpass

    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask for the password; use --password-file")
    password = getpass("Password: ")
    if getpass("Again: ") != password:
        raise UsageError("the passwords differ")
    return _checked(password)


def _checked(password: str) -> str:
    if not password:
        raise UsageError("the password is empty")
    if len(password.encode()) > PASSWORD_BYTES_MAX:
        raise UsageError(f"the password has more than {PASSWORD_BYTES_MAX} bytes")
    return password


def upsertion_of(user: str, mechanism: Mechanism, password: str, iterations: int) -> ScramCredentialUpsertion:
    """Return the credential of a password, with a new salt."""
    salt = secrets.token_bytes(SALT_BYTES)
    return ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism.type,
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(mechanism, password, salt, iterations),
    )


async def _describe(cluster: Any, user: str | None) -> dict[str, list[dict[str, Any]]]:
    """Return the credentials of one user, or of all, by name; an unknown user is left out."""
    what = "describing SCRAM users"
    request = DescribeUserScramCredentialsRequest(users=None if user is None else (UserName(name=user),))
    answer = await cluster.send_request_until(AnyNode(), request, _no_codes, what=what)
    _raise_error(answer, what)
    users = {}
    for result in answer.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        _raise_error(result, what)
        users[result.user] = [
            {"mechanism": MECHANISM_TYPES[each.mechanism].name, "iterations": each.iterations}
            for each in result.credential_infos
            if each.mechanism in MECHANISM_TYPES
        ]
    return dict(sorted(users.items()))


async def _alter(cluster: Any, request: AlterUserScramCredentialsRequest, what: str) -> None:
    answer = await cluster.send_request_until(Controller(), request, _no_codes, what=what)
    for result in answer.results:
        _raise_error(result, what)


def _no_codes(_: Any) -> tuple[()]:
    return ()


def _raise_error(result: Any, what: str) -> None:
    if result.error_code:
        raise BrokerError(result.error_code, what, detail=result.error_message)


def _show(session: Session, verb: str, mechanisms: list[Mechanism]) -> None:
    user, names = session.options.user, [each.name for each in mechanisms]
    session.out.show({verb: {"user": user, "mechanisms": names}})
    session.out.note(f"user {user} {verb}: {', '.join(names)}")
