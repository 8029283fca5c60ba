"""Suspected and departed brokers, and the responses that wait for the election of their successors.

A client that loses its connection to a leader asks another broker for the new leader at once, before one is elected. A
response that names the dead leader costs the client a back-off of a second or more. A response that is delayed until
the new leader is elected avoids that.

Laws
    LB1  A response waits only while it would name a suspected broker, and at most `SUSPECT_MS_MAX` after the suspicion
         of that registration began: a broker that no other can replace delays its clients once.
    LB2  A broker is listed for `DEPARTED_MS` after its registration has ended. librdkafka removes a broker that is not
         listed any more together with the partitions that it led, and looks for their new leaders a second later, even
         if the same response names them.
    LB3  Waiting responses are computed in slices of `CHECK_SLICE_MS` of the event loop, however many there are; a slice
         is longer only by one response. Other brokers would take a broker that stalls for longer to be dead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.scheduling.timers import Timers

SUSPECT_MS_MAX: Final = 1_000
DEPARTED_MS: Final = 3_000
RECHECK_DELAY_MS: Final = 5  # a client may notice a dead broker earlier than this broker does
WAITING_MAX: Final = 1_000  # responses; further ones are not delayed
CHECK_SLICE_MS: Final = 20  # time of the event loop for waiting responses, before other callbacks run

IsSettled = Callable[[], bool]


class LostBrokers:
    """`broker_id in lost` is true for a suspected broker. Times are elapsed ms."""

    def __init__(self, timers: Timers, now_ms: Callable[[], int]) -> None:
        self._timers, self._now_ms = timers, now_ms
        self._suspects: dict[int, tuple[int, int]] = {}  # broker: (epoch of its registration, when the suspicion ends)
        self._brokers: Mapping[int, BrokerRegistration] = {}
        self._departed: dict[int, tuple[BrokerRegistration, int]] = {}  # (last registration, until when it is listed)
        self._waiting: dict[DelayedReply[bool], IsSettled] = {}

    def __contains__(self, broker_id: int) -> bool:
        _, until_ms = self._suspects.get(broker_id, (0, 0))
        return self._now_ms() < until_ms

    def suspect(self, broker_id: int, epoch: int) -> None:
        """Suspect the registration with this epoch; only the first call for it starts the suspicion."""
        known = self._suspects.get(broker_id)
        if known is None or known[0] < epoch:
            until_ms = self._now_ms() + SUSPECT_MS_MAX
            self._suspects[broker_id] = epoch, until_ms
            self._timers.at(("lost brokers", broker_id), until_ms, self._check_waiting)

    def trust(self, broker_id: int) -> None:
        """End the suspicion: the broker has responded."""
        if self._suspects.pop(broker_id, None) is not None:
            self._timers.cancel(("lost brokers", broker_id))
            self.recheck_soon()

    def brokers_changed(self, brokers: Mapping[int, BrokerRegistration]) -> None:
        """Set the registered brokers; a broker that has registered again is not suspected any more."""
        until_ms = self._now_ms() + DEPARTED_MS
        self._departed = {broker_id: entry for broker_id, entry in self._departed.items() if broker_id not in brokers}
        self._departed |= {
            broker_id: (broker, until_ms) for broker_id, broker in self._brokers.items() if broker_id not in brokers
        }
        self._brokers = dict(brokers)
        for broker_id, (epoch, _) in list(self._suspects.items()):
            if broker_id in brokers and brokers[broker_id].epoch != epoch:
                self.trust(broker_id)
        self.recheck_soon()

    def departed(self) -> dict[int, BrokerRegistration]:
        """Return the brokers that are listed although they are not registered any more."""
        now_ms = self._now_ms()
        return {broker_id: broker for broker_id, (broker, until_ms) in self._departed.items() if now_ms < until_ms}

    def recheck_soon(self) -> None:
        """Check the waiting responses after `RECHECK_DELAY_MS`: an election changes many partitions one by one."""
        if self._waiting and ("lost brokers", "look") not in self._timers:
            self._timers.at(("lost brokers", "look"), self._now_ms() + RECHECK_DELAY_MS, self._check_waiting)

    def wait(self, is_settled: IsSettled) -> DelayedReply[bool]:
        """Return a reply that is answered when `is_settled()`, checked after `RECHECK_DELAY_MS` and after each change.

        `is_settled` must return True while no broker is suspected.
        """
        reply: DelayedReply[bool] = DelayedReply()
        if len(self._waiting) >= WAITING_MAX:
            reply.answer(False)
            return reply
        self._waiting[reply] = is_settled
        reply.on_abandon(lambda: self._forget(reply))
        self.recheck_soon()
        return reply

    def _forget(self, reply: DelayedReply[bool]) -> None:
        self._waiting.pop(reply, None)

    def _check_waiting(self) -> None:
        """LB3. Answer the settled replies; move the others to the end of the queue."""
        ends_ms = self._now_ms() + CHECK_SLICE_MS
        for reply, is_settled in list(self._waiting.items()):
            if self._now_ms() >= ends_ms:
                self.recheck_soon()
                return
            if self._waiting.pop(reply, None) is None:
                continue  # abandoned by one of these calls
            if is_settled():
                reply.answer(True)
            else:
                self._waiting[reply] = is_settled
