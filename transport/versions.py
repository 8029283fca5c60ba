"""Choose the version of an API to use with one broker. Pure.

Law
    The version is the newest that the broker, this library and the caller support. If there is none, the message of
    Unsupported names the versions of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from rota.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from rota.protocol.registry import APIS
from rota.transport.errors import Unsupported

VERSION_MAX: Final = (1 << 15) - 1


class Features(NamedTuple):
    """The finalized features of a cluster (KIP-584): the levels by name, and their epoch; -1 when none are known."""

    epoch: int
    levels: Mapping[str, int]


NO_FEATURES: Final = Features(-1, {})


def version_ranges(served: Iterable[ApiVersion]) -> dict[int, range]:
    """Return the versions by API key of an ApiVersions response."""
    return {item.api_key: range(item.min_version, item.max_version + 1) for item in served}


def finalized_features(answer: ApiVersionsResponse) -> Features:
    """Return the finalized features of an ApiVersions response."""
    if answer.finalized_features_epoch < 0:
        return NO_FEATURES
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    return Features(answer.finalized_features_epoch, levels)


def newest(broker: str, known: Mapping[int, range], key: int, low: int = 0, high: int | None = None) -> int:
    """Return the newest common version of the API from `low` to `high`. Raises Unsupported."""
    ours, theirs = APIS[key].versions, known.get(key, range(0))
    high = VERSION_MAX if high is None else high
    if theirs:
        best = min(ours[-1], theirs[-1], high)
        if best >= max(ours[0], theirs[0], low):
            return best
    raise Unsupported(_why(broker, key, theirs, low, high))


def _why(broker: str, key: int, theirs: range, low: int, high: int) -> str:
    api = APIS[key]
    if not theirs:
        return f"broker {broker} does not serve {api.name}: this needs a newer broker"
    ours = range(max(api.versions[0], low), min(api.versions[-1], high) + 1)
    which = f"version {_describe(ours)}" if ours else "a version that this library does not have"
    newer = theirs[-1] < (ours[0] if ours else low)
    remedy = "this needs a newer broker" if newer else "this needs an older broker or a newer rota"
    return f"broker {broker} serves {api.name} in version {_describe(theirs)}, and {which} is needed: {remedy}"


def _describe(versions: range) -> str:
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]}-{versions[-1]}"
