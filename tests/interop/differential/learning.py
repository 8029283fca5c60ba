"""What a slot learns from an answer, as a client would."""

from __future__ import annotations

from typing import Any

from tests.interop.differential.slots import Circle, Slot

from rota.protocol.errors import ErrorCode

NOT_A_MEMBER = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
AGAIN = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}


def learn(circle: Circle, slot: Slot, answer: Any) -> None:
    """Take over a new id or generation; join again after an error that says so."""
    if answer.KEY == 11:
        _joined(circle, slot, answer)
    elif answer.KEY == 13:
        _left(slot, answer)
    elif answer.KEY in (12, 14):
        _answered(slot, answer)


def _joined(circle: Circle, slot: Slot, answer: Any) -> None:
    known = answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
    if known and answer.member_id and answer.member_id not in circle.issued:
        circle.issued.append(answer.member_id)
    if not slot.bound:
        return
    if answer.error_code in NOT_A_MEMBER:
        slot.forget()
    if not known:
        return
    if slot.member_id not in ("", answer.member_id):
        slot.old_ids.append(slot.member_id)
    slot.member_id = answer.member_id
    if answer.error_code == ErrorCode.NONE:
        slot.generation, slot.protocol, slot.phase = answer.generation_id, answer.protocol_name, "joined"
        slot.roster = tuple(member.member_id for member in answer.members)


def _left(slot: Slot, answer: Any) -> None:
    if answer.error_code == ErrorCode.NONE and all(member.error_code == ErrorCode.NONE for member in answer.members):
        slot.forget()


def _answered(slot: Slot, answer: Any) -> None:
    if slot.sent.member_id != slot.member_id:
        return  # it was not about this slot
    if answer.error_code in NOT_A_MEMBER:
        slot.forget()
    elif answer.error_code in AGAIN:
        slot.phase = "out"
    elif answer.KEY == 14 and answer.error_code == ErrorCode.NONE:
        slot.phase = "in"
