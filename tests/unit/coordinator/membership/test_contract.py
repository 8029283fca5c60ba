"""The defaults of the failure detector are those of its properties."""

from __future__ import annotations

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.membership.contract import SwimSettings


def test_the_defaults_are_those_of_the_properties() -> None:
    config = BrokerConfig()
    assert SwimSettings() == SwimSettings(
        interval_ms=config.rota_swim_interval_ms,
        ping_timeout_ms=config.rota_swim_ping_timeout_ms,
        suspicion_timeout_ms=config.rota_swim_suspicion_timeout_ms,
        indirect_pings=config.rota_swim_indirect_pings,
    )


def test_half_a_second_of_silence_declares_no_broker_dead() -> None:
    settings = SwimSettings()
    assert 2 * settings.ping_timeout_ms + settings.suspicion_timeout_ms >= 500
