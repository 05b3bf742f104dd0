"""The compose file that makes a cluster of the bot, as far as it can be held without an engine."""

from __future__ import annotations

import json
import re

import pytest

from bot.cli.control import ELSEWHERE
from tests.test_deploy import LIMITS, services, text


def test_a_cluster_has_two_of_each_part_and_keeps_its_engines_to_itself() -> None:
    cluster = services("docker-compose.cluster.yml")
    assert {name: cluster[name]["environment"]["BOT_ROLE"] for name in ("bot", "worker")} == {
        "bot": "gateway",
        "worker": "worker",
    }
    assert [cluster[name]["deploy"]["replicas"] for name in ("bot", "worker")] == [2, 2]
    assert cluster["worker"]["extends"] == {"file": "docker-compose.yml", "service": "bot"}
    # Their data are one volume, but each is reached by commands of its own.
    place = f"/app/{ELSEWHERE.parent}:uid=1000,gid=1000,mode=0700"
    assert [cluster[name]["tmpfs"] for name in ("bot", "worker")] == [[place]] * 2
    assert cluster["init"]["build"]["args"]["EXTRAS"] == "broker,postgres"
    for name in ("rabbitmq", "postgres"):
        engine = cluster[name]
        assert re.fullmatch(r"[a-z]+:\d+(\.\d+)?-alpine", engine["image"])
        assert "ports" not in engine
        assert engine["logging"] == LIMITS
        assert engine["restart"] == "unless-stopped"
        assert all(volume.startswith(f"{name}:/") for volume in engine["volumes"])
        assert cluster["worker"]["depends_on"][name] == {"condition": "service_healthy"}


def test_a_cluster_does_not_start_without_a_password() -> None:
    whole = text("docker-compose.cluster.yml")
    assert "${CLUSTER_PASSWORD:?Set CLUSTER_PASSWORD in .env" in whole
    assert not re.search(r"PASS(WORD)?: (?!\$\{CLUSTER_PASSWORD\}$)", whole, re.MULTILINE)


def test_prometheus_looks_at_every_part_and_its_own_rules_stay() -> None:
    (mounted,) = services("docker-compose.cluster.yml")["prometheus"]["volumes"]
    file, place, _ = mounted.split(":")
    assert any(one.split(":")[1] == place for one in services("docker-compose.yml")["prometheus"]["volumes"])
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    alone, many = (yaml.safe_load(text(name)) for name in ("deploy/prometheus.yml", file.removeprefix("./")))
    (job,) = many["scrape_configs"]
    assert (job["job_name"], many["rule_files"]) == ("frostagent", alone["rule_files"])
    (found,) = job["dns_sd_configs"]
    cluster = services("docker-compose.cluster.yml")
    assert all("BOT_ROLE" in cluster[name]["environment"] for name in found["names"])
    assert alone["scrape_configs"][0]["static_configs"] == [{"targets": [f"bot:{found['port']}"]}]


def test_every_rule_for_a_cluster_has_an_expression_and_says_what_is_the_matter() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    alone, cluster = yaml.safe_load(text("deploy/alerts.yml"))["groups"]
    assert {rule["alert"] for rule in cluster["rules"]} == {
        *("ClusterOffline", "PartitionWithoutWorker", "BrokerDown", "GatewayWaits", "EventsLost", "SetAside", "TooLate")
    }
    for rule in cluster["rules"]:
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert rule["annotations"]["summary"].endswith(".")
        assert re.search(r"frostagent_(partitions|worker_\w+|gateway_\w+|broker_up|set_aside_total)", rule["expr"])
    offline = next(rule["expr"] for rule in alone["rules"] if rule["alert"] == "Offline")
    assert offline.endswith("unless on (instance) (frostagent_partitions or frostagent_gateway_waiting)")


def test_the_dashboard_has_a_row_for_each_role() -> None:
    panels = json.loads(text("deploy/grafana/dashboards/frostagent.json"))["panels"]
    rows = [panel["title"] for panel in panels if panel["type"] == "row"]
    assert rows[-3:] == ["Gateways (a cluster)", "Workers (a cluster)", "Process"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (place["x"] + x, place["y"] + y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(set(taken)) == len(taken)  # none lies over another
