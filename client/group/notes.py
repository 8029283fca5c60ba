"""The log messages of a member: the values of a Note's `event`, in Kafka's terms (R27).

Every note carries `group`, `member` and `generation`; the others carry what is written beside them.
"""

from __future__ import annotations

from typing import Final

DISCOVERED: Final = "Discovered group coordinator"  # node
COORDINATOR_LOST: Final = "Group coordinator is unavailable or invalid, rediscovery will be attempted"  # node, cause
NOT_DISCOVERED: Final = "Group coordinator lookup failed"  # cause
REQUEST_JOINING: Final = "Request joining group"  # reason
JOINING: Final = "(Re-)joining group"  # reason
JOINED: Final = "Successfully joined group"  # protocol, leader
JOIN_FAILED: Final = "JoinGroup failed"  # code
FINISHED_ASSIGNMENT: Final = "Finished assignment for group"  # members, partitions, assignor
SKIPPED_ASSIGNMENT: Final = "Skipped assignment for returning static leader"
TOPICS_UNKNOWN: Final = (
    "The following subscribed topics are not assigned to any member, nothing is known of them"  # topics
)
SYNCED: Final = "Successfully synced group"
SYNC_FAILED: Final = "SyncGroup failed"  # code
ASSIGNMENT: Final = "Updating assignment"  # assigned, owned, added, revoked
ADDING: Final = "Adding newly assigned partitions"  # partitions
REVOKING: Final = "Revoke previously assigned partitions"  # partitions
LOSING: Final = "Giving away all assigned partitions as lost"  # partitions
REBALANCING: Final = "Attempt to heartbeat failed since group is rebalancing"
HEARTBEAT_FAILED: Final = "Attempt to heartbeat failed"  # code
SESSION_EXPIRED: Final = "Session timed out without receiving a heartbeat response"
RESETTING: Final = "Resetting generation"  # reason, member_id_kept
FENCED: Final = "The group instance id has been fenced by another instance"  # instance
POLL_EXPIRED: Final = (
    "consumer poll timeout has expired. The time between two polls was longer than max_poll_interval_ms: the loop "
    "takes too long to process what it got. Raise max_poll_interval_ms, or lower max_poll_records"
)  # max_poll_interval_ms
LEAVING: Final = "Sending LeaveGroup request to coordinator"  # reason, node
LEFT: Final = "Left group"  # code
NOT_LEFT: Final = "LeaveGroup request failed"  # cause
REJOIN_IGNORED: Final = (
    "The coordinator assigns: a member of the consumer protocol cannot request a rebalance"  # reason
)
CONSUMER_PROTOCOL: Final = "group_protocol=auto uses the consumer protocol: the coordinator speaks it"
CLASSIC_PROTOCOL: Final = "group_protocol=auto uses the classic protocol"  # cause
CLOSED: Final = "Membership closed"
