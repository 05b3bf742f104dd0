"""The compose file that makes a cluster of the bot, as far as it can be held without an engine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from bot.cli.control import ELSEWHERE
from bot.cli.setup.servers import BOT_URL
from tests.compose.stack import OURS
from tests.fakes import until
from tests.ports import free_ports
from tests.test_deploy import LIMITS, ROOT, of, services, text

ROLES = ("gateway", "worker")
NGINX = "deploy/nginx.cluster.conf"
GATEWAYS = ("127.0.0.1", "127.0.0.2")  # where two are reached by one port
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
ACCOUNT = {"Authorization": "Bearer of-mine", "X-Self-ID": "10001", "X-Client-Role": "Universal"}


def test_a_cluster_has_two_of_each_part_and_keeps_its_engines_to_itself() -> None:
    cluster = services("docker-compose.cluster.yml")
    assert [cluster[name]["environment"]["BOT_ROLE"] for name in ROLES] == [*ROLES]
    assert [cluster[name]["deploy"]["replicas"] for name in ROLES] == [2, 2]
    assert [cluster[name]["extends"] for name in ROLES] == [{"file": "docker-compose.yml", "service": "bot"}] * 2
    # Their data are one volume, but each is reached by commands of its own.
    place = f"/app/{ELSEWHERE.parent}:uid=1000,gid=1000,mode=0700"
    assert [cluster[name]["tmpfs"] for name in ROLES] == [[place]] * 2
    assert cluster["init"]["build"]["args"]["EXTRAS"] == "broker,postgres"
    for name in ("nginx", "rabbitmq", "postgres"):
        engine = cluster[name]
        assert re.fullmatch(r"[a-z]+:\d+(\.\d+)?-alpine", engine["image"])
        assert "ports" not in engine
        assert engine["logging"] == LIMITS
        assert engine["restart"] == "unless-stopped"
    for name in ("rabbitmq", "postgres"):
        engine = cluster[name]
        assert all(volume.startswith(f"{name}:/") for volume in engine["volumes"])
        assert cluster["worker"]["depends_on"][name] == {"condition": "service_healthy"}


def test_two_workers_of_a_cluster_have_partitions_to_share_and_env_says_how_many() -> None:
    cluster = services("docker-compose.cluster.yml")
    for name in ("init", *ROLES):
        assert cluster[name]["environment"]["BROKER_PARTITIONS"] == "${BROKER_PARTITIONS:-8}"


def test_a_large_file_is_fetched_from_the_worker_that_has_it_by_a_name_of_its_own() -> None:
    cluster = services("docker-compose.cluster.yml")
    said = {name: cluster[name]["environment"].get("MEDIA_URL", "") for name in ROLES}
    assert said == {"gateway": "", "worker": "http://{hostname}:8080/media"}
    assert not {"hostname", "container_name", "ports"} & cluster["worker"].keys()
    listening = services("docker-compose.yml")["bot"]["environment"]
    assert (listening["WEB_HOST"], listening["WEB_PORT"]) == ("0.0.0.0", "8080")


def test_the_name_that_accounts_dial_is_that_of_nginx_and_of_nobody_else() -> None:
    cluster = services("docker-compose.cluster.yml")
    assert urlsplit(BOT_URL).netloc == "bot:6199"
    assert cluster["nginx"]["networks"] == {"default": {"aliases": ["bot"]}}
    assert cluster["bot"] == {"deploy": {"replicas": 0}}
    assert not [name for name, service in cluster.items() if "networks" in service and name != "nginx"]
    (mounted,) = cluster["nginx"]["volumes"]
    assert mounted == f"./{NGINX}:/etc/nginx/nginx.conf:ro"


def test_nginx_passes_what_a_onebot_server_says_of_itself_and_keeps_a_quiet_connection() -> None:
    said = dict(re.findall(r"^\s*(\w+) ([^;{]+);", text(NGINX), re.MULTILINE))
    set_here = re.findall(r"proxy_set_header (\S+) (\S+);", text(NGINX))
    assert set_here == [("Upgrade", "$http_upgrade"), ("Connection", '"upgrade"'), ("Host", "$http_host")]
    assert "proxy_pass_request_headers" not in said
    assert said["listen"].split()[0] == "6199"
    assert (said["set"], said["proxy_pass"]) == ("$gateways gateway", "http://$gateways:6199")
    assert said["resolver"].startswith("127.0.0.11 ")  # Docker's
    assert said["proxy_http_version"] == "1.1"
    assert said["proxy_read_timeout"] == said["proxy_send_timeout"] == "1h"
    assert said["proxy_next_upstream"].split()[:2] == ["error", "timeout"]
    assert (said["access_log"], said["error_log"]) == ("off", "/dev/stderr crit")  # a url may have the token


class Names(asyncio.DatagramProtocol):
    """A name server to which every name is that of all gateways."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        head = data[:2] + b"\x81\x80\0\1" + struct.pack(">H", len(GATEWAYS)) + bytes(4)
        answers = b"".join(b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 600, 4) + socket.inet_aton(one) for one in GATEWAYS)
        self.transport.sendto(head + data[12:] + answers, addr)


@asynccontextmanager
async def nginx(folder: Path, *, names: int, gateways: int) -> AsyncIterator[str]:
    """It runs with our file, but for the ports and the places of an ordinary account; the url to dial."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    (port,) = free_ports(1)
    places = "".join(f"{kind}_temp_path {folder}/{kind}; " for kind in TEMPORARY)
    config = text(NGINX).replace("http {", f"http {{ {places}", 1).replace("listen 6199", f"listen 127.0.0.1:{port}")
    config = config.replace("$gateways:6199", f"$gateways:{gateways}").replace("127.0.0.11 ", f"127.0.0.1:{names} ")
    (folder / "nginx.conf").write_text(f"daemon off;\npid {folder}/pid;\n{config}", "utf-8")
    words = [program, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    running = await asyncio.create_subprocess_exec(*words)
    try:
        await until(lambda: running.returncode is not None or listens(port))
        assert running.returncode is None
        yield f"ws://127.0.0.1:{port}"
    finally:
        running.terminate()
        await running.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.system
async def test_accounts_reach_both_gateways_through_nginx_and_the_other_one_where_one_is_gone(tmp_path: Path) -> None:
    loop, met = asyncio.get_running_loop(), Counter[str]()
    port, names = free_ports(2)

    async def gateway(accepted: ServerConnection) -> None:
        assert accepted.request is not None
        assert accepted.request.path == "/ws?access_token=a+b"
        assert {name: accepted.request.headers[name] for name in ACCOUNT} == ACCOUNT
        met[accepted.local_address[0]] += 1
        async for frame in accepted:
            await accepted.send(frame)

    async def dial(url: str) -> None:
        async with connect(f"{url}/ws?access_token=a+b", additional_headers=ACCOUNT) as account:
            await account.send("x" * 100_000)
            assert await account.recv() == "x" * 100_000

    server, _ = await loop.create_datagram_endpoint(Names, ("127.0.0.1", names))
    with closing(server):
        async with (
            serve(gateway, GATEWAYS[0], port) as first,
            serve(gateway, GATEWAYS[1], port),
            nginx(tmp_path, names=names, gateways=port) as url,
        ):
            for _ in range(100):
                await dial(url)
                if len(met) == len(GATEWAYS):
                    break
            assert set(met) == set(GATEWAYS)
            first.close()
            await first.wait_closed()
            met.clear()
            for _ in range(10):
                await dial(url)
            assert met == {GATEWAYS[1]: 10}


def test_the_real_engine_gets_every_file_of_ours_that_its_image_and_its_compose_files_take() -> None:
    copied = [rest.split()[:-1] for stage in (0, 1) for rest in of("COPY", stage) if "--from" not in rest]
    assert {source.split("/")[0] for sources in copied for source in sources} <= set(OURS)
    assert {"deploy", "docker-compose.yml", "docker-compose.cluster.yml"} <= set(OURS)
    assert all((ROOT / name).exists() for name in OURS)


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
    assert found["names"] == [*ROLES]
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
