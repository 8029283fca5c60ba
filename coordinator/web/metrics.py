"""`/metrics`: the samples as text, in the format that the scraper accepts.

The samples are read on the loop, in slices; the text is made in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.responses import Response

from rota.coordinator.observe.counters import ApiCounters, bucket_ends_seconds
from rota.coordinator.observe.lag_service import Lag
from rota.coordinator.web.broker_requests import ApiError
from rota.coordinator.web.families import FAMILIES, Family, Kind
from rota.coordinator.web.samples import Sample, Samples
from rota.coordinator.web.site import Site
from rota.transport.handshake import software_version

if TYPE_CHECKING:
    from starlette.requests import Request

SLICE_SECONDS: Final = 0.003
LAG_GROUPS_MAX: Final = 200  # queried before one scrape; the others before the next ones
LAG_CACHE_MS: Final = 30_000  # a group is not queried again before
LAG_SECONDS_MAX: Final = 3.0
LAGS_AT_ONCE: Final = 8

_ENDS: Final = [str(end) for end in bucket_ends_seconds()]


async def read_in_slices(samples: Iterable[Sample | None]) -> list[Sample]:
    """Return all samples; the loop has its turn in between."""
    found: list[Sample] = []
    until = time.perf_counter() + SLICE_SECONDS
    for sample in samples:
        if sample is not None:
            found.append(sample)
        elif time.perf_counter() > until:
            await asyncio.sleep(0)
            until = time.perf_counter() + SLICE_SECONDS
    return found


class Metrics:
    """The endpoint. One scrape at a time; others wait for their turn."""

    def __init__(self, site: Site, lag: Lag) -> None:
        self._samples, self._turn = Samples(site, software_version(), lag), asyncio.Lock()
        self._site, self._lag = site, lag
        self._process = ProcessCollector(registry=None)

    async def serve(self, request: Request) -> Response:
        """Return the metrics as text."""
        async with self._turn:
            await self._query_lags()
            samples = await read_in_slices(self._samples.read())
            encode, content_type = choose_encoder(request.headers.get("accept", ""))
            text = await asyncio.to_thread(lambda: encode(self._registry(samples)))
        return Response(text, headers={"content-type": content_type, "cache-control": "no-store"})

    async def _query_lags(self) -> None:
        """Let the lags of the groups that are coordinated here be known, as far as leaders answer in time."""
        groups = self._due()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAG_SECONDS_MAX):
                for first in range(0, len(groups), LAGS_AT_ONCE):
                    await asyncio.gather(*map(self._query_lag, groups[first : first + LAGS_AT_ONCE]))

    def _due(self) -> list[str]:
        """Return the groups whose lag is not known or old, the oldest query first."""
        ago_ms = {
            group.group_id: self._lag.ms_since_query(group.group_id)
            for group in self._site.node.groups.machines()
            if group.offsets
        }
        due = [group_id for group_id, age_ms in ago_ms.items() if age_ms >= LAG_CACHE_MS]
        return sorted(due, key=lambda group_id: -ago_ms[group_id])[:LAG_GROUPS_MAX]

    async def _query_lag(self, group_id: str) -> None:
        with contextlib.suppress(ApiError):  # it was deleted, or moved to another broker, which exposes its lag
            await self._lag.get(group_id)

    def _registry(self, samples: list[Sample]) -> CollectorRegistry:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Fixed([*families(samples), *self._process.collect()]))
        return registry


class _Fixed(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics


def families(samples: list[Sample]) -> list[Metric]:
    """Return the samples by family, in the order of the table."""
    metrics: dict[str, Metric] = {}
    for sample in samples:
        family = FAMILIES[sample.family]
        metric = metrics.get(family.name)
        if metric is None:
            metric = metrics[family.name] = _metric(family)
        _add(metric, sample)
    return [metrics[name] for name in FAMILIES if name in metrics]


def _metric(family: Family) -> Metric:
    match family.kind:
        case Kind.COUNTER:
            return CounterMetricFamily(family.name, family.help, labels=family.labels)
        case Kind.GAUGE:
            return GaugeMetricFamily(family.name, family.help, labels=family.labels)
        case Kind.HISTOGRAM:
            return HistogramMetricFamily(family.name, family.help, labels=family.labels)


def _add(metric: Metric, sample: Sample) -> None:
    value = sample.value
    if isinstance(value, ApiCounters):
        assert isinstance(metric, HistogramMetricFamily)
        metric.add_metric(sample.labels, list(cumulative(value)), value.total_ns / 1e9)
    else:
        assert isinstance(metric, CounterMetricFamily | GaugeMetricFamily)
        metric.add_metric(sample.labels, value)


def cumulative(counters: ApiCounters) -> Iterator[tuple[str, float]]:
    """Iterate over (upper end, requests up to it), as Prometheus wants them."""
    total = 0
    for end, count in zip([*_ENDS, "+Inf"], counters.buckets, strict=True):
        total += count
        yield end, total
