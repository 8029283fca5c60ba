"""`rota acls`: list, add and remove ACLs; explain which one decides, and why.

Laws
    CA1 `explain` decides as a broker of Rota does, with the ACLs, super users and defaults that the cluster shows.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from rota.cli.arguments import add_subcommand, subcommands
from rota.cli.session import Session
from rota.cli.settings import UsageError
from rota.cli.text import Table
from rota.client.errors import BrokerError

if TYPE_CHECKING:
    from rota.client.network.cluster import Cluster
    from rota.coordinator.security.acl import Acl, AclFilter
    from rota.coordinator.security.authorizer import Authorizer

OPERATIONS: Final = (
    *("all", "read", "write", "create", "delete", "alter", "describe", "cluster-action"),
    *("describe-configs", "alter-configs", "idempotent-write"),
)
SUPER_USERS, ALLOW_IF_NONE = "super.users", "allow.everyone.if.no.acl.found"


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the subcommands."""
    commands = subcommands(parser)
    add = add_subcommand(commands, "list", list_acls, "list the ACLs, or those of a resource or a principal")
    _add_resource(add, required=False)
    _add_filter(add)
    add = add_subcommand(commands, "add", add_acls, "allow or deny a principal operations on a resource")
    _add_resource(add, required=True)
    add.add_argument("--principal", required=True, metavar="TYPE:NAME", help="User:alice, or User:* for everybody")
    add.add_argument("--deny", action="store_true", help="deny instead of allow: overrides every ALLOW")
    add.add_argument("--host", default="*", metavar="ADDRESS", help="of the client; default: any")
    _add_operations(add, required=True)
    add = add_subcommand(commands, "remove", remove_acls, "remove the ACLs that all given options select")
    _add_resource(add, required=False)
    _add_filter(add)
    add.add_argument("--all", action="store_true", help="every ACL of the cluster")
    add = add_subcommand(commands, "explain", explain, "say whether a principal may do it, and which ACL decides")
    _add_resource(add, required=True)
    add.add_argument("--user", required=True, metavar="NAME", help="or TYPE:NAME")
    add.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="of the client; default %(default)s")
    add.add_argument("--operation", required=True, choices=OPERATIONS[1:])


def _add_resource(parser: ArgumentParser, *, required: bool) -> None:
    group = parser.add_mutually_exclusive_group(required=required)
    group.add_argument("--topic", metavar="NAME", help="`*` for all")
    group.add_argument("--group", metavar="NAME", help="`*` for all")
    group.add_argument("--transactional-id", metavar="NAME", help="`*` for all")
    group.add_argument("--cluster", action="store_true", help="the cluster itself")
    parser.add_argument("--prefixed", action="store_true", help="NAME is a prefix of names")


def _add_filter(parser: ArgumentParser) -> None:
    parser.add_argument("--match", action="store_true", help="all ACLs that concern NAME: prefixes and `*` as well")
    parser.add_argument("--principal", metavar="TYPE:NAME", help="only ACLs of this principal")
    parser.add_argument("--host", metavar="ADDRESS", help="only ACLs with this host, as they were created")
    _add_operations(parser, required=False)


def _add_operations(parser: ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--operation", required=required, action="append", choices=OPERATIONS, help="as often as needed"
    )


# ---- the commands


async def list_acls(session: Session) -> None:
    from rota.coordinator.security.operations import Operation

    async with session.cluster() as cluster:
        found = await _describe(cluster, filter_of(session.options))
    operations = {Operation[_code(each)] for each in session.options.operation or ()}
    _show(session, "acls", [acl for acl in found if not operations or acl.entry.operation in operations])


async def add_acls(session: Session) -> None:
    from rota.client.network.targets import AnyNode
    from rota.protocol.messages.create_acls import AclCreation, CreateAclsRequest

    acls = acls_of(session.options)
    creations = tuple(
        AclCreation(
            resource_type=acl.pattern.resource_type,
            resource_name=acl.pattern.name,
            resource_pattern_type=acl.pattern.pattern_type,
            principal=acl.entry.principal,
            host=acl.entry.host,
            operation=acl.entry.operation,
            permission_type=acl.entry.permission,
        )
        for acl in acls
    )
    what = "creating ACLs"
    async with session.cluster() as cluster:
        answer = await cluster.send_request_until(
            AnyNode(), CreateAclsRequest(creations=creations), _no_codes, what=what
        )
    for result in answer.results:
        _raise_error(result, what)
    _show(session, "added", acls)


async def remove_acls(session: Session) -> None:
    from rota.client.network.targets import AnyNode
    from rota.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

    options = session.options
    if options.all == _selects(options):
        raise UsageError("name a resource, a principal, a host or operations, or all ACLs with --all")
    filters = tuple(
        DeleteAclsFilter(**_fields(filter_of(options, operation))) for operation in options.operation or (None,)
    )
    what = "deleting ACLs"
    async with session.cluster() as cluster:
        answer = await cluster.send_request_until(AnyNode(), DeleteAclsRequest(filters=filters), _no_codes, what=what)
    removed = []
    for result in answer.filter_results:
        _raise_error(result, what)
        for matching in result.matching_acls:
            _raise_error(matching, what)
            removed.append(_acl(matching, matching))
    _show(session, "removed", removed)


async def explain(session: Session) -> None:
    from rota.coordinator.security.acl import AclFilter
    from rota.coordinator.security.authorizer import Authorizer
    from rota.coordinator.security.operations import Operation
    from rota.coordinator.security.principal import Principal

    options = session.options
    pattern = pattern_of(options)
    if options.prefixed:
        raise UsageError("explain: name one resource, without --prefixed")
    principal = Principal.parse(options.user if ":" in options.user else f"User:{options.user}")
    super_users, allow_if_none = await _defaults(session)
    async with session.cluster() as cluster:
        acls = await _describe(cluster, AclFilter())
    authorizer = Authorizer(super_users or (), allow_if_no_acl=allow_if_none)
    for each, of_pattern in groupby(acls, key=lambda acl: acl.pattern):
        authorizer.replace(each, [acl.entry for acl in of_pattern])
    operation = Operation[_code(options.operation)]
    decision = authorizer.decide(principal, options.host, operation, pattern.resource_type, pattern.name)
    document = {
        "principal": str(principal),
        "host": options.host,
        "operation": operation.name,
        "resource_type": pattern.resource_type.name,
        "resource": pattern.name,
        "allowed": decision.is_allowed,
        "reason": decision.reason.value,
        "acl": None if decision.acl is None else acl_document(decision.acl),
    }
    session.out.show(document)
    for line in explanation(authorizer, document, decision.acl, knows_super_users=super_users is not None):
        session.out.note(line)


def explanation(
    authorizer: Authorizer, document: dict[str, Any], acl: Acl | None, *, knows_super_users: bool
) -> Iterable[str]:
    """Return the lines that say what was decided and why."""
    verb = "may" if document["allowed"] else "may not"
    resource = f"{document['resource_type'].lower()} {document['resource']}"
    yield f"{document['principal']} {verb} {document['operation']} {resource} from {document['host']}:"
    if acl is None:
        yield f"  {document['reason']}."
    else:
        yield f"  the {acl.pattern.pattern_type.name} pattern {acl.pattern.name} has: {acl.entry}"
        if acl.entry.operation.name not in ("ALL", document["operation"]):
            yield f"  {acl.entry.operation.name} implies {document['operation']}."
    if not document["allowed"] and acl is None:
        near = [
            each for each in authorizer.acls if each.pattern.matches(each.pattern.resource_type, document["resource"])
        ]
        concerning = [each for each in near if each.pattern.resource_type.name == document["resource_type"]]
        yield (
            f"  {len(concerning)} ACLs concern this resource; none of them allows it."
            if concerning
            else ("  No ACL concerns this resource.")
        )
    if not knows_super_users:
        yield "  This broker does not show its super users: a super user may do everything."


# ---- arguments and messages


def pattern_of(options: Namespace) -> Any:
    """Return the resource pattern of the arguments."""
    from rota.coordinator.security.acl import CLUSTER_NAME, PatternType, ResourcePattern
    from rota.coordinator.security.operations import ResourceType

    how = PatternType.PREFIXED if options.prefixed else PatternType.LITERAL
    for kind, name in (
        (ResourceType.TOPIC, options.topic),
        (ResourceType.GROUP, options.group),
        (ResourceType.TRANSACTIONAL_ID, options.transactional_id),
    ):
        if name is not None:
            return ResourcePattern(kind, how, name)
    return ResourcePattern(ResourceType.CLUSTER, PatternType.LITERAL, CLUSTER_NAME)


def acls_of(options: Namespace) -> list[Acl]:
    """Return the ACLs to create. Raises UsageError."""
    from rota.coordinator.security.acl import Acl, Entry, InvalidAcl, Permission, check_acl
    from rota.coordinator.security.operations import Operation

    permission = Permission.DENY if options.deny else Permission.ALLOW
    acls = [
        Acl(pattern_of(options), Entry(permission, Operation[_code(each)], options.principal, options.host))
        for each in dict.fromkeys(options.operation)
    ]
    try:
        for acl in acls:
            check_acl(acl)
    except InvalidAcl as error:
        raise UsageError(str(error)) from error
    return acls


def filter_of(options: Namespace, operation: str | None = None) -> AclFilter:
    """Return the filter of the arguments. Raises UsageError."""
    from rota.coordinator.security.acl import AclFilter, PatternType
    from rota.coordinator.security.operations import Operation, ResourceType

    has_resource = options.cluster or not options.topic is options.group is options.transactional_id is None
    if options.match and options.prefixed:
        raise UsageError("--match includes prefixes: give it or --prefixed, not both")
    pattern = pattern_of(options)
    how = PatternType.MATCH if options.match else pattern.pattern_type
    anyhow = PatternType.PREFIXED if options.prefixed else PatternType.ANY
    return AclFilter(
        resource_type=pattern.resource_type if has_resource else ResourceType.ANY,
        name=pattern.name if has_resource else None,
        pattern_type=how if has_resource else anyhow,
        principal=options.principal,
        host=options.host,
        operation=Operation.ANY if operation is None else Operation[_code(operation)],
    )


def acl_document(acl: Acl) -> dict[str, str]:
    """Return an ACL as JSON values."""
    pattern, entry = acl.pattern, acl.entry
    return {
        "resource_type": pattern.resource_type.name,
        "resource": pattern.name,
        "pattern": pattern.pattern_type.name,
        "permission": entry.permission.name,
        "operation": entry.operation.name,
        "principal": entry.principal,
        "host": entry.host,
    }


def _selects(options: Namespace) -> bool:
    named = (options.topic, options.group, options.transactional_id, options.principal, options.host, options.operation)
    return options.cluster or any(each is not None for each in named)


def _code(operation: str) -> str:
    return operation.replace("-", "_").upper()


def _fields(selection: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": selection.resource_type,
        "resource_name_filter": selection.name,
        "pattern_type_filter": selection.pattern_type,
        "principal_filter": selection.principal,
        "host_filter": selection.host,
        "operation": selection.operation,
        "permission_type": selection.permission,
    }


async def _describe(cluster: Cluster, selection: AclFilter) -> list[Acl]:
    from rota.client.network.targets import AnyNode
    from rota.protocol.messages.describe_acls import DescribeAclsRequest

    what = "describing ACLs"
    answer = await cluster.send_request_until(
        AnyNode(), DescribeAclsRequest(**_fields(selection)), _no_codes, what=what
    )
    _raise_error(answer, what)
    return sorted(_acl(resource, each) for resource in answer.resources for each in resource.acls)


async def _defaults(session: Session) -> tuple[frozenset[str] | None, bool]:
    """Return the super users, None where the broker does not show them, and whether everybody may without ACLs."""
    from rota.client import ConfigResource
    from rota.coordinator.config.broker import parse_principals

    async with session.admin() as admin:
        broker = ConfigResource.broker((await admin.describe_cluster()).nodes[0].id)
        shown = (await admin.describe_configs([broker], keys=[SUPER_USERS, ALLOW_IF_NONE]))[broker]
    users, allow = shown.get(SUPER_USERS), shown.get(ALLOW_IF_NONE)
    super_users = None if users is None or users.value is None else parse_principals(users.value)
    return super_users, allow is not None and allow.value == "true"


def _acl(resource: Any, entry: Any) -> Acl:
    from rota.coordinator.security.acl import Acl, Entry, PatternType, Permission, ResourcePattern
    from rota.coordinator.security.operations import Operation, ResourceType

    return Acl(
        ResourcePattern(
            ResourceType(resource.resource_type), PatternType(resource.pattern_type), resource.resource_name
        ),
        Entry(Permission(entry.permission_type), Operation(entry.operation), entry.principal, entry.host),
    )


def _no_codes(_: Any) -> tuple[()]:
    return ()


def _raise_error(result: Any, what: str) -> None:
    if result.error_code:
        raise BrokerError(result.error_code, what, detail=result.error_message)


def _show(session: Session, name: str, acls: Iterable[Acl]) -> None:
    documents = [acl_document(acl) for acl in acls]
    columns = ("TYPE", "RESOURCE", "PATTERN", "PERMISSION", "OPERATION", "PRINCIPAL", "HOST")
    rows = [tuple(document.values()) for document in documents]
    session.out.show({name: documents}, Table(columns, rows, empty="no ACLs"))
