"""What a gateway shows is what Prometheus reads."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from adapters.metrics.cluster import GatewayVitals, render_gateway

VITALS = GatewayVitals(online=2, offline=1, reconnects=3, published=40, waiting=5, lost=6, refused=7, is_up=True)


def test_every_figure_is_there_under_its_name() -> None:
    families = text_string_to_metric_families(render_gateway(VITALS).decode())
    figures = {(sample.name, *sample.labels.values()): sample.value for one in families for sample in one.samples}
    assert {name: value for name, value in figures.items() if name[0].startswith("frostagent")} == {
        ("frostagent_accounts", "true"): 2,
        ("frostagent_accounts", "false"): 1,
        ("frostagent_reconnects_total",): 3,
        ("frostagent_gateway_events_total",): 40,
        ("frostagent_gateway_waiting",): 5,
        ("frostagent_gateway_lost_total",): 6,
        ("frostagent_gateway_refused_total",): 7,
        ("frostagent_broker_up",): 1,
    }
