"""The brokers that may be dead or have just left, and the answers that wait until it is known who leads in their place.

A client whose connection to a leader breaks asks another broker for the new leader at once, before there is one. An
answer that names the dead leader costs the client a back-off of a second or more; an answer that comes as soon as the
new leader is elected costs it nothing.

Laws
    LB1  An answer waits only while it would name a suspected broker, and at most `SUSPECT_MS_MAX` after the suspicion
         of that life of the broker began: a broker whose place nobody can take delays its clients once.
    LB2  A broker is listed for `DEPARTED_MS` after its registration has ended. librdkafka drops a broker that is not
         listed any more together with the partitions that it led, and looks for their new leaders a second later, even
         when the same answer names them.
    LB3  However many answers wait and however long they are, giving them takes `LOOK_MS_MAX` of the event loop at a
         time and the time of one: a broker that stood still for longer would be taken for dead itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.scheduling.timers import Timers

SUSPECT_MS_MAX: Final = 1_000
DEPARTED_MS: Final = 3_000
NEWS_MS: Final = 5  # a client may hear of a broken connection earlier than this broker, whose own breaks as well
WAITING_MAX: Final = 1_000  # answers; any more are given at once
LOOK_MS_MAX: Final = 20  # of the event loop's time for answers that can be given at once; then others have their turn

IsSettled = Callable[[], bool]


class LostBrokers:
    """`broker_id in lost` for a suspect, `wait`, `departed`. Times are elapsed ms."""

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
        """Suspect the life of the broker that registered with this epoch, from the first such call on."""
        known = self._suspects.get(broker_id)
        if known is None or known[0] < epoch:
            until_ms = self._now_ms() + SUSPECT_MS_MAX
            self._suspects[broker_id] = epoch, until_ms
            self._timers.at(("lost brokers", broker_id), until_ms, self._look)

    def trust(self, broker_id: int) -> None:
        """The broker has answered."""
        if self._suspects.pop(broker_id, None) is not None:
            self._timers.cancel(("lost brokers", broker_id))
            self.image_changed()

    def brokers_changed(self, brokers: Mapping[int, BrokerRegistration]) -> None:
        """Take the registered brokers: one that has registered again lives."""
        until_ms = self._now_ms() + DEPARTED_MS
        self._departed = {broker_id: entry for broker_id, entry in self._departed.items() if broker_id not in brokers}
        self._departed |= {
            broker_id: (broker, until_ms) for broker_id, broker in self._brokers.items() if broker_id not in brokers
        }
        self._brokers = dict(brokers)
        for broker_id, (epoch, _) in list(self._suspects.items()):
            if broker_id in brokers and brokers[broker_id].epoch != epoch:
                self.trust(broker_id)
        self.image_changed()

    def departed(self) -> dict[int, BrokerRegistration]:
        """Return the brokers that are to be listed although they are not registered any more."""
        now_ms = self._now_ms()
        return {broker_id: broker for broker_id, (broker, until_ms) in self._departed.items() if now_ms < until_ms}

    def image_changed(self) -> None:
        """Look at the waiting answers soon: an election changes many partitions one by one."""
        if self._waiting and ("lost brokers", "look") not in self._timers:
            self._timers.at(("lost brokers", "look"), self._now_ms() + NEWS_MS, self._look)

    def wait(self, is_settled: IsSettled) -> DelayedReply[bool]:
        """Return a reply that is given when `is_settled`, looked at in `NEWS_MS` and then after each change.

        `is_settled` has to return True when nobody is suspected.
        """
        reply: DelayedReply[bool] = DelayedReply()
        if len(self._waiting) >= WAITING_MAX:
            reply.answer(False)
            return reply
        self._waiting[reply] = is_settled
        reply.on_abandon(lambda: self._forget(reply))
        self.image_changed()
        return reply

    def _forget(self, reply: DelayedReply[bool]) -> None:
        self._waiting.pop(reply, None)

    def _look(self) -> None:
        """LB3. What does not wait any more is answered, what waits goes to the end of the queue."""
        ends_ms = self._now_ms() + LOOK_MS_MAX
        for reply, is_settled in list(self._waiting.items()):
            if self._now_ms() >= ends_ms:
                self.image_changed()
                return
            if self._waiting.pop(reply, None) is None:
                continue  # abandoned by one of these calls
            if is_settled():
                reply.answer(True)
            else:
                self._waiting[reply] = is_settled
