"""The events of a group's timeline: the values of a Note's `event`, in Kafka's terms (R27).

Every note carries `group`; the others carry what is written beside them.
"""

from __future__ import annotations

from typing import Final

MEMBER_ID_REQUIRED: Final = "Dynamic member with unknown member id joins group and is asked to rejoin with this id"
MEMBER_ADDED: Final = "Dynamic member with unknown member id joins group and is added"
PENDING_JOINED: Final = "Pending dynamic member joins group and is added"
STATIC_ADDED: Final = "Static member with unknown member id joins group and is added"
STATIC_REPLACED: Final = "Static member with unknown member id joins group and replaces the member of its instance"
STATIC_KEPT: Final = "Static member does not affect the selected protocol and does not trigger a rebalance"
GROUP_FULL: Final = "Member is refused because the group is full"
PROTOCOLS_REFUSED: Final = "Member is refused because its protocols do not match those of the group"  # reason
RECORD_TOO_LARGE: Final = "Member is refused because the group's record would be too large"  # member, members
PREPARING: Final = "Preparing to rebalance group"  # state, generation (the old one), reason, client_reason
STABILIZED: Final = "Stabilized group"  # generation, members, protocol, leader
LEADER_ELECTED: Final = "Leader failed to join before the rebalance timeout and another member was elected"
NO_MEMBER_REJOINED: Final = "Group could not complete rebalance because no members rejoined"
ASSIGNED: Final = "Assignment received from leader"  # generation, members, static_members
NOW_EMPTY: Final = "Group is now empty"  # generation
LEFT: Final = "Member has left group through explicit LeaveGroup request"  # member, client_reason
PENDING_LEFT: Final = "Pending member has left group through explicit LeaveGroup request"
FAILED: Final = "Member has failed, removing it from the group"  # member, reason
PENDING_EXPIRED: Final = "Pending member has been removed after session timeout expiration"
NOT_REJOINED: Final = "Group removed dynamic members who have not joined"  # members
NOT_SYNCED: Final = "Group removed members who have not sent their sync requests"  # members
COMMIT_REFUSED: Final = "Offset commit is refused"  # member, operation, error, count
HEARTBEAT_REFUSED: Final = "Heartbeat is refused"  # member, operation, error, count, reason
INSTANCE_IN_USE: Final = "Static member is refused because another member has its instance"  # the same, holder
RECONCILING: Final = "Members move to the target assignment"  # generation, members, waiting
RECONCILED: Final = "Members have the target assignment"  # generation, members
NOT_REVOKED: Final = "Group removed a member who has not revoked its partitions"  # member, reason
FENCED: Final = "Static member is fenced by another member of its instance"  # member, instance, holder, operation
LOADED: Final = "Loaded group"  # state, generation, members
OFFSETS_EXPIRED: Final = "Offsets of the group expired"  # offsets
DELETED: Final = "Group was deleted"  # offsets
UPGRADED: Final = "Classic group becomes a group of the consumer protocol"  # state, generation, members
DOWNGRADED: Final = "Group of the consumer protocol becomes a classic group"  # state, generation, members
