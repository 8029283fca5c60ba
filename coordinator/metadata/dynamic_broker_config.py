"""Follows the dynamic configs of this broker and of all brokers: what the image has is in force in `BrokerConfig`.

Laws
    BC3 A change that the store has is in force on every running broker soon, and after a restart from the start.
    BC4 A stored value that this release cannot use is ignored with a warning; the broker runs with the value below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import structlog

from rota.coordinator.config.broker import BrokerConfig, definition_of
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.dynamic import check_topics, fitting, is_known, usable, without_effect
from rota.coordinator.metadata.changes import DEFAULT_NAME, Change, ConfigKind, ResourceConfigChanged
from rota.coordinator.metadata.image import Image

log = structlog.get_logger("rota.config")


class DynamicBrokerConfig:
    """Create it before the image is loaded, so that everything that follows the image sees the new `config`."""

    def __init__(self, config: BrokerConfig, image: Image) -> None:
        self._config, self._image = config, image
        self._callbacks: list[Callable[[], None]] = []
        self._warned: set[str] = set()
        image.on_change(self._changed)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each change of the broker's configuration."""
        self._callbacks.append(callback)

    def _changed(self, change: Change) -> None:
        if not isinstance(change, ResourceConfigChanged) or change.kind is not ConfigKind.BROKERS:
            return
        if change.name in (DEFAULT_NAME, str(self._config.node_id)):
            self._reconfigure()
            config = self._config
            config.ignored_defaults = self._ignored(DEFAULT_NAME, config.dynamic_defaults)
            config.ignored = self._ignored(str(config.node_id), config.dynamic)

    def _reconfigure(self) -> None:
        try:
            defaults, own = self._fitting(self._usable(DEFAULT_NAME), self._usable(str(self._config.node_id)))
            if defaults == self._config.dynamic_defaults and own == self._config.dynamic:
                return
            changed = self._config.with_dynamic(defaults, own)
            check_topics(changed, ((topic.name, topic.configs) for topic in self._image), self._config)
            self._config.reconfigure(defaults, own)
        except ConfigRefused as refused:
            self._warn(f"Dynamic configs are ignored: {refused}")
            return
        for warning in without_effect({**defaults, **own}):
            self._warn(warning)
        log.info("Configuration changed", defaults=_shown(defaults), own=_shown(own))
        for callback in self._callbacks:
            callback()

    def _usable(self, name: str) -> dict[str, str]:
        used, ignored = usable(self._image.resource_configs(ConfigKind.BROKERS, name))
        self._warn_of(ignored)
        return used

    def _ignored(self, name: str, used: Mapping[str, str]) -> dict[str, str]:
        """Return the stored configs that are not in force here, for DescribeConfigs, which knows their names."""
        stored = self._image.resource_configs(ConfigKind.BROKERS, name)
        return {key: text for key, text in stored.items() if used.get(key) != text and is_known(key)}

    def _fitting(self, defaults: Mapping[str, str], own: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        defaults, own, ignored = fitting(self._config, defaults, own)
        self._warn_of(ignored)
        return defaults, own

    def _warn_of(self, ignored: Iterable[str]) -> None:
        for reason in ignored:
            self._warn(f"A dynamic config is ignored: {reason}")

    def _warn(self, text: str) -> None:
        """Log a warning once, not again at each change."""
        if text not in self._warned:
            self._warned.add(text)
            log.warning(text)


def _shown(configs: Mapping[str, str]) -> dict[str, str]:
    """Return the configs without the values of passwords."""
    return {name: "[hidden]" if definition_of(name).is_sensitive else text for name, text in configs.items()}
