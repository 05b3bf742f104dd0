from __future__ import annotations

from bot.cli.control_commands import cluster_to_text


def test_where_nothing_is_the_matter_a_cluster_is_a_line_for_each_part() -> None:
    cluster = {
        "broker": "RabbitMQ 4.1.0",
        "set_aside": 0,
        "partitions": [{"waiting": 0, "worked": True}],
        "workers": [],
        "gateways": [],
        "silent": {},
    }
    assert cluster_to_text(cluster) == "broker    RabbitMQ 4.1.0: 0 events wait, none is set aside"
    assert cluster_to_text({"error": "refused"}) == "cluster   cannot be asked: refused"
