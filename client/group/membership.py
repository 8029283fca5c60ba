"""The membership of a consumer: performs the effects of the pure machine on a Cluster (machine.py for the classic
protocol, epoch_member.py for the consumer protocol of KIP-848, protocol_selection.py for the choice between them).

Laws
    Partitions are revoked and assigned only inside `poll` and `close`, never while the user works on records.
    Heartbeats are sent in the background; nothing that the user awaits delays them.
    A `poll` that is cancelled loses nothing; a `close` that is cancelled leaves no task and no timer behind.
    A task that is cancelled, also before its first step, is a request that failed: the machine tries again. A callback
    whose task is cancelled before its first step is run all the same.

This file is longer than others because one class performs all effects, in the order in which the machine gives them.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
import re
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, assert_never

from rota.client.config import ConsumerConfig
from rota.client.errors import IllegalUse, KafkaError, Unreachable
from rota.client.group import effects as out
from rota.client.group import events, notes
from rota.client.group.assignors.base import Assignor
from rota.client.group.epoch_member import EpochMember
from rota.client.group.hooks import BeforeLeaving, Hooks, call_hook
from rota.client.group.protocol_selection import classic_successor, first_member, step, why_classic
from rota.client.group.states import MemberState
from rota.client.log import logger
from rota.client.network.cluster import Cluster
from rota.client.types import GroupMetadata

ClusterEffect = out.FindCoordinator | out.ForgetCoordinator | out.FollowTopics | out.RefreshMetadata

LEAVE_GRACE_MS = 500  # for LeaveGroup alone, when the time to close is over
JITTER = 0.2  # of a wait
_log = logger("rota.client.group")


class Membership:
    """The membership of one consumer in one group."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        assignors: Sequence[Assignor],
        hooks: Hooks,
        *,
        wake: Callable[[], None],
    ) -> None:
        """`wake()` is called when `poll` has something to do: the consumer may be waiting for records."""
        self._cluster, self._hooks, self._wake = cluster, hooks, wake
        self._group = config.group_id or ""
        self._assignors = assignors
        self._member = first_member(config, assignors)
        if (cause := why_classic(config)) is not None:
            _log.info(notes.CLASSIC_PROTOCOL, group=self._group, cause=cause)
        self._events: deque[events.Event] = deque()
        self._stepping = False
        self._progress = asyncio.Event()
        self.failure: BaseException | None = None  # for the next poll
        self._raised: BaseException | None = None  # by a callback while closing
        self._abandoned = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}  # by ticket; those without one have a negative number
        self._unnumbered = 0
        self._hook_task: asyncio.Task[None] | None = None
        self._hook: out.Hook | None = None  # that `_hook_task` runs
        self._context: contextvars.Context | None = None
        self._before_leaving: BeforeLeaving | None = None
        self._unlisten: Callable[[], None] | None = None

    # ---- what the consumer sees

    @property
    def group(self) -> GroupMetadata:
        """For commits: generation -1 and no member id when there is no membership."""
        return self._member.group

    @property
    def last_group(self) -> GroupMetadata:
        """The same; without a membership the one that was lost last (EO2)."""
        group = self._member.group
        return group if group.generation_id >= 0 else self._member.last_group or group

    @property
    def state(self) -> str:
        """The machine's state by name: see docs/CLIENT_STATES.md."""
        return MemberState.CLOSED.name if self._abandoned else self._member.state.name

    @property
    def is_settled(self) -> bool:
        """`poll` has nothing to do: part of a generation; or a cooperative member that holds partitions and joins
        again, and reads on meanwhile (KIP-429)."""
        return self.failure is None and not self._member.is_due

    def subscribe(self, topics: frozenset[str] | re.Pattern[str]) -> None:
        """Takes effect with the next `poll`. A pattern follows topics as they come and go; it has to match the whole
        name."""
        if self._unlisten is None:
            self._unlisten = self._cluster.on_change(lambda metadata: self._step(events.MetadataChanged(metadata)))
            self._step(events.MetadataChanged(self._cluster.metadata))
        self._step(events.Subscribed(topics))

    async def poll(self) -> None:
        """Stop the timer of max.poll.interval.ms and do the due work: discover, join, sync, revoke, assign.

        Returns at once when nothing is due. Otherwise waits until the member is part of a generation (the consumer
        puts a timeout around it). The work goes on in a task of its own: a cancelled `poll` loses nothing, the next one
        waits for the same work. Raises what makes membership impossible (FencedInstance, BrokerError, AssignmentFailed)
        and what user callbacks raised.

        A poll that is cancelled ends when the user's callback that runs inside it has ended, and begins no other; a
        second cancellation ends it at once.

        From here until `returning` the user counts as waiting for us: call that whenever control goes back to the user.
        A `poll` that raises or is cancelled does so by itself.
        """
        self._refuse_callbacks()
        if self._abandoned or self._member.closing is not None:
            raise IllegalUse(f"this member of group {self._group} is closed")
        self._context = contextvars.copy_context()
        if self.failure is None:
            self._step(events.PollBegan())
        try:
            while self.failure is None and self._member.is_due:
                self._progress.clear()
                await self._progress.wait()
            self._raise_failure()
        except BaseException:
            self._step(events.PollEnded())
            try:
                await self._callback_done()
            finally:
                self.returning()
            raise
        self._step(events.PollEnded())

    def returning(self) -> None:
        """The user gets control, with records, nothing or an exception: max.poll.interval.ms counts from here."""
        self._step(events.PollReturned())

    def commit_refused(self, code: int, generation: int | None = None) -> None:
        """A commit was refused with this code (22, 25, 27, 82). `generation` is the one of the commit; a refusal in an
        earlier generation changes nothing."""
        self._step(events.CommitRefused(code, generation))

    def rejoin(self, reason: str) -> None:
        """Start a rebalance with the next `poll`. Without a membership this does nothing."""
        self._step(events.Rejoin(reason))

    async def close(self, reason: str, *, before_leaving: BeforeLeaving, timeout_ms: int) -> None:
        """Finish the work in progress, run `before_leaving` (the last commit), revoke, send LeaveGroup with the reason.

        A static member (group_instance_id) does not leave (KIP-345). Never raises for a broker's sake; what user
        callbacks raised is raised when all is done. After `timeout_ms` callbacks that still run are cancelled, and
        LeaveGroup gets half a second more.
        """
        self._refuse_callbacks()
        if self._abandoned:
            return
        self._context = contextvars.copy_context()
        self._before_leaving = self._before_leaving or before_leaving
        try:
            self._step(events.Close(reason))
            if not await self._closed_within(timeout_ms):
                self._out_of_time()
                if not await self._closed_within(LEAVE_GRACE_MS):
                    self._out_of_time()
        finally:
            await self._abandon()
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    async def _callback_done(self) -> None:
        """A user's callback runs inside the poll that began it, also when that poll is cancelled. The automatic commit
        before a rejoin is no callback: it goes on by itself."""
        while self._hook_task is not None and not isinstance(self._hook, out.BeforeRejoin):
            self._progress.clear()
            await self._progress.wait()

    # ---- closing

    async def _closed_within(self, ms: int) -> bool:
        limit = asyncio.timeout(ms / 1000)
        try:
            async with limit:
                while self._member.state is not MemberState.CLOSED:
                    self._progress.clear()
                    await self._progress.wait()
        except TimeoutError:
            if not limit.expired():
                raise
            return False
        return True

    def _out_of_time(self) -> None:
        if self._hook_task is not None:
            self._hook_task.cancel()
        self._step(events.CloseTimedOut())

    async def _abandon(self) -> None:
        """Cancel all timers and tasks. Only the task of a callback that suppresses the cancellation may go on."""
        self._abandoned = True
        if self._unlisten is not None:
            self._unlisten()
            self._unlisten = None
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LEAVE_GRACE_MS / 1000)

    def _refuse_callbacks(self) -> None:
        if self._hook_task is not None and asyncio.current_task() is self._hook_task:
            raise IllegalUse("a rebalance callback may not poll nor close its own consumer")

    def _raise_failure(self) -> None:
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    # ---- the machine

    def _step(self, event: events.Event) -> None:
        """Step the machine: events in their order, the effects of each before the next event."""
        if self._abandoned:
            return
        self._events.append(event)
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._events:
                for effect in step(self._member, self._events.popleft(), self._now_ms()):
                    self._perform(effect)
        except Exception as mistake:  # noqa: BLE001  # a bug: waiting callers must not wait for ever
            _log.error("a membership failed", group=self._group, state=self.state, exc_info=mistake)
            self._events.clear()
            self.failure = mistake
        finally:
            self._stepping = False
        self._progress.set()

    def _now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def _perform(self, effect: out.Effect) -> None:
        match effect:
            case out.SendRequest():
                cancelled = events.RequestFailed(
                    effect.ticket, Unreachable("the request to the coordinator was cancelled")
                )
                self._spawn(self._send_request(effect), effect.ticket, cancelled=cancelled)
            case out.Arm(key, at_ms):
                self._arm(key, at_ms)
            case out.Disarm(key):
                self._timers.pop(key).cancel()
            case out.RunHook():
                self._begin(effect)
            case out.Note(level, event, fields):
                getattr(_log, level)(event, **fields)
            case out.RaiseInPoll(error):
                self.failure = self.failure or error
                self._wake()
            case out.Wake():
                self._wake()
            case out.UseClassicProtocol():
                self._use_classic()
            case out.CancelRequest(ticket):
                if (task := self._tasks.get(ticket)) is not None:
                    task.cancel()
            case out.FindCoordinator() | out.ForgetCoordinator() | out.FollowTopics() | out.RefreshMetadata():
                self._perform_on_cluster(effect)
            case _:
                assert_never(effect)

    def _use_classic(self) -> None:
        """E6. Its timers end here; its requests end as events that change nothing."""
        assert isinstance(self._member, EpochMember)
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._member, first = classic_successor(self._member, self._assignors)
        self._events.extendleft(reversed(first))

    def _perform_on_cluster(self, effect: ClusterEffect) -> None:
        match effect:
            case out.FindCoordinator():
                self._unnumbered -= 1
                error = Unreachable("the search for the coordinator was cancelled")
                self._spawn(self._find(), self._unnumbered, cancelled=events.CoordinatorNotFound(error))
            case out.ForgetCoordinator(node):
                self._cluster.coordinator_moved(self._group, node)
            case out.FollowTopics(topics):
                self._cluster.set_topics(topics)
            case out.RefreshMetadata(ticket):
                refreshed = events.MetadataRefreshed(ticket, self._cluster.metadata)
                self._spawn(self._refresh(ticket), ticket, cancelled=refreshed)

    def _arm(self, key: str, at_ms: int) -> None:
        old = self._timers.pop(key, None)
        if old is not None:
            old.cancel()
        loop = asyncio.get_running_loop()
        at = (at_ms + 1) / 1000  # a whole number of ms, rounded down, must not be reached before its time
        if key == "retry":  # those who lost one coordinator do not all come back to it at once
            at += (at - loop.time()) * random.uniform(-JITTER, JITTER)
        self._timers[key] = loop.call_at(at, self._timer_expired, key)

    def _timer_expired(self, key: str) -> None:
        del self._timers[key]
        self._step(events.TimerExpired(key))

    def _spawn(
        self,
        work: Coroutine[Any, Any, None],
        ticket: int,
        context: contextvars.Context | None = None,
        *,
        cancelled: events.Event | None = None,
    ) -> asyncio.Task[None]:
        """Begin a task. `cancelled`: the event when the task is cancelled, also before its first step."""

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.pop(ticket, None)
            if task.cancelled() and cancelled is not None:
                self._step(cancelled)

        task = asyncio.get_running_loop().create_task(work, context=context, name=f"rota-group-{self._group}")
        self._tasks[ticket] = task
        task.add_done_callback(ended)
        return task

    # ---- what takes time

    async def _send_request(self, command: out.SendRequest) -> None:
        try:
            response = await self._cluster.send_request(
                command.node, command.request, timeout_ms=command.timeout_ms, lane=command.lane
            )
        except Exception as error:  # noqa: BLE001  # any exception is raised by the waiting `poll`
            self._step(events.RequestFailed(command.ticket, _as_kafka_error(error)))
        else:
            self._step(events.ResponseReceived(command.ticket, response))

    async def _find(self) -> None:
        try:
            node = await self._cluster.coordinator(self._group)
        except Exception as error:  # noqa: BLE001  # as above
            self._step(events.CoordinatorNotFound(_as_kafka_error(error)))
        else:
            self._step(events.CoordinatorFound(node))

    async def _refresh(self, ticket: int) -> None:
        try:
            metadata = await self._cluster.refresh()
        except KafkaError:
            metadata = self._cluster.metadata
        self._step(events.MetadataRefreshed(ticket, metadata))

    def _begin(self, run: out.RunHook) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled():
                return
            self._hook_task = None  # it was cancelled before its first step
            if self._abandoned or self._member.closing is not None:
                self._step(events.HookDone(run.ticket))
            else:
                self._begin(run)

        self._hook = run.hook
        self._hook_task = self._spawn(self._run(run), run.ticket, self._context)
        self._hook_task.add_done_callback(ended)

    async def _run(self, run: out.RunHook) -> None:
        error: BaseException | None = None
        try:
            await call_hook(self._hooks, run.hook, self._before_leaving)
        except (KeyboardInterrupt, SystemExit):
            raise
        except asyncio.CancelledError:
            if self._member.closing is None:
                error = IllegalUse(f"a rebalance callback of group {self._group} was cancelled")
        except BaseException as raised:  # noqa: BLE001  # whatever the user's callback raises goes to who polls
            error = raised
        self._hook_task = None
        if self._member.closing is not None:
            self._raised, error = self._raised or error, None
        self._step(events.HookDone(run.ticket, error))


def _as_kafka_error(error: Exception) -> KafkaError:
    """Any exception as a KafkaError, for the caller of `poll`."""
    if isinstance(error, KafkaError):
        return error
    wrapped = KafkaError(f"the request to the coordinator failed: {error!r}")
    wrapped.__cause__ = error
    return wrapped
