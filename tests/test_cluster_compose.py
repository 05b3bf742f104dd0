"""The compose file that makes a cluster of the bot, as far as it can be held without an engine."""

from __future__ import annotations

import re

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
    assert [cluster[name]["tmpfs"] for name in ("bot", "worker")] == [[f"/app/{ELSEWHERE.parent}"]] * 2
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
