"""The profile `cluster` of the compose file, as far as it can be held without an engine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import struct
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from bot.cli.control import ELSEWHERE
from bot.cli.setup.files import BOT_URL
from tests.cases import each_case
from tests.compose.stack import OURS
from tests.fakes import until
from tests.ports import free_ports
from tests.test_deploy import LIMITS, ROOT, interpolated, of, services, text
from tests.test_deploy import OURS as IMAGE

ROLES = ("gateway", "worker")
NGINX = "deploy/nginx.cluster.conf"
GATEWAYS = ("127.0.0.1", "127.0.0.2")  # where two are reached by one port
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
ACCOUNT = {"Authorization": "Bearer of-mine", "X-Self-ID": "10001", "X-Client-Role": "Universal"}


def test_a_cluster_has_two_of_each_part_and_keeps_its_engines_to_itself() -> None:
    cluster = services()
    assert [cluster[name]["environment"]["BOT_ROLE"] for name in ROLES] == [*ROLES]
    replicas = [interpolated(cluster[name]["deploy"]["replicas"], {}) for name in ("bot", *ROLES)]
    assert replicas == ["1", "2", "2"]
    # Their data are one volume, but each is reached by commands of its own.
    place = f"/app/{ELSEWHERE.parent}:uid=1000,gid=1000,mode=0700"
    assert [cluster[name]["tmpfs"] for name in ROLES] == [["/tmp", place]] * 2
    same = cluster["bot"].keys() - {"deploy", "ports", "environment", "depends_on", "tmpfs"}
    for name in ROLES:
        part = cluster[name]
        assert part["image"] == IMAGE
        assert {key: part[key] for key in same} == {key: cluster["bot"][key] for key in same}
        assert "ports" not in part  # two of them would want the same
        assert cluster["bot"]["environment"].items() <= part["environment"].items()
    extras = cluster["init"]["build"]["args"]["EXTRAS"]
    built = [interpolated(extras, {"CLUSTER_PASSWORD": "x"} | more) for more in ({}, {"EXTRAS": "otel"})]
    assert (interpolated(extras, {}), built) == ("", ["broker,postgres", "otel"])
    for name in ("nginx", "rabbitmq", "postgres"):
        engine = cluster[name]
        assert re.fullmatch(r"[a-z]+:\d+(\.\d+)?-alpine", engine["image"])
        assert engine["logging"] == LIMITS
        assert engine["restart"] == "unless-stopped"
    for name in ("rabbitmq", "postgres"):
        engine = cluster[name]
        assert "ports" not in engine
        assert all(volume.startswith(f"{name}:/") for volume in engine["volumes"])
        assert cluster["worker"]["depends_on"][name] == {"condition": "service_healthy"}


def test_two_workers_of_a_cluster_have_partitions_to_share_and_env_says_how_many() -> None:
    cluster = services()
    for name in ROLES:
        assert cluster[name]["environment"]["BROKER_PARTITIONS"] == "${BROKER_PARTITIONS:-8}"


def test_a_large_file_is_fetched_from_the_worker_that_has_it_by_a_name_of_its_own() -> None:
    cluster = services()
    said = {name: cluster[name]["environment"].get("MEDIA_URL", "") for name in ("bot", *ROLES)}
    assert said == {"bot": "", "gateway": "", "worker": "http://{hostname}:8080/media"}
    assert not {"hostname", "container_name", "ports"} & cluster["worker"].keys()
    listening = cluster["worker"]["environment"]
    assert (listening["WEB_HOST"], listening["WEB_PORT"]) == ("0.0.0.0", "8080")


def test_the_name_that_accounts_dial_is_that_of_nginx_and_of_nobody_else() -> None:
    cluster = services()
    assert urlsplit(BOT_URL).netloc == "bot:6199"
    assert cluster["nginx"]["networks"] == {"default": {"aliases": ["bot"]}}
    assert not [name for name, service in cluster.items() if "networks" in service and name != "nginx"]
    (mounted,) = cluster["nginx"]["volumes"]
    assert mounted == f"./{NGINX}:/etc/nginx/templates/nginx.conf.template:ro"
    assert cluster["nginx"]["environment"]["NGINX_ENVSUBST_OUTPUT_DIR"] == "/etc/nginx"


def test_nginx_passes_what_a_onebot_server_says_of_itself_and_keeps_a_quiet_connection() -> None:
    accounts, console = text(NGINX).partition("# The console")[::2]
    said = dict(re.findall(r"^\s*(\w+) ([^;{]+);", accounts, re.MULTILINE))
    set_here = re.findall(r"proxy_set_header (\S+) (\S+);", accounts)
    assert set_here == [("Upgrade", "$http_upgrade"), ("Connection", '"upgrade"'), ("Host", "$http_host")]
    assert "proxy_pass_request_headers" not in said
    assert said["listen"].split()[0] == "6199"
    assert (said["set"], said["proxy_pass"]) == ("$gateways gateway", "http://$gateways:6199")
    assert said["resolver"].startswith("127.0.0.11 ")  # Docker's
    assert said["proxy_http_version"] == "1.1"
    assert said["proxy_read_timeout"] == said["proxy_send_timeout"] == "1h"
    assert said["proxy_next_upstream"].split()[:2] == ["error", "timeout"]
    assert (said["access_log"], said["error_log"]) == ("off", "/dev/stderr crit")  # a url may have the token
    assert not {"access_log", "error_log"} & set(console.split())
    # What the image's own entry point puts in is the port alone: names of nginx's are in no environment.
    assert (
        {*re.findall(r"\$\{(\w+)\}", text(NGINX))}
        == {"CONSOLE_PORT"}
        == {*services()["nginx"]["environment"]} - {"NGINX_ENVSUBST_OUTPUT_DIR"}
    )


class Names(asyncio.DatagramProtocol):
    """A name server to which every name is that of all gateways."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        head = data[:2] + b"\x81\x80\0\1" + struct.pack(">H", len(GATEWAYS)) + bytes(4)
        answers = b"".join(b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 600, 4) + socket.inet_aton(one) for one in GATEWAYS)
        self.transport.sendto(head + data[12:] + answers, addr)


@asynccontextmanager
async def nginx(folder: Path, *, names: int, gateways: int, console: int = 1) -> AsyncIterator[tuple[str, str]]:
    """It runs with our file, but for ports and the places of an ordinary account; where accounts dial, and browsers."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    port, shown = free_ports(2)
    places = "".join(f"{kind}_temp_path {folder}/{kind}; " for kind in TEMPORARY)
    config = text(NGINX).replace("http {", f"http {{ {places}", 1).replace("listen 6199", f"listen 127.0.0.1:{port}")
    config = config.replace("$gateways:6199", f"$gateways:{gateways}").replace("127.0.0.11 ", f"127.0.0.1:{names} ")
    config = config.replace("listen ${CONSOLE_PORT}", f"listen 127.0.0.1:{shown}").replace(
        "${CONSOLE_PORT}", str(console)
    )
    (folder / "nginx.conf").write_text(f"daemon off;\npid {folder}/pid;\n{config}", "utf-8")
    words = [program, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    running = await asyncio.create_subprocess_exec(*words)
    try:
        await until(lambda: running.returncode is not None or listens(port))
        assert running.returncode is None
        yield f"ws://127.0.0.1:{port}", f"http://127.0.0.1:{shown}"
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
            nginx(tmp_path, names=names, gateways=port) as (url, _),
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


@pytest.mark.system
async def test_a_browser_reaches_the_worker_that_has_the_console_and_hears_where_none_has_it(tmp_path: Path) -> None:
    loop, told = asyncio.get_running_loop(), list[str]()
    port, names = free_ports(2)

    async def show(request: web.Request) -> web.StreamResponse:
        told.append(f"{request.method} {request.headers['Host']} {request.headers['X-Forwarded-For']}")
        if request.method == "POST":
            return web.Response(text=await request.text())
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"first")
        await heard.wait()
        await answer.write(b"second")
        return answer

    heard, app = asyncio.Event(), web.Application()
    app.router.add_route("*", "/{path:.*}", show)
    runner = web.AppRunner(app)
    await runner.setup()
    server, _ = await loop.create_datagram_endpoint(Names, ("127.0.0.1", names))
    async with AsyncExitStack() as stack:
        stack.enter_context(closing(server))
        stack.push_async_callback(runner.cleanup)
        async with (
            nginx(tmp_path, names=names, gateways=1, console=port) as (_, url),
            aiohttp.ClientSession() as session,
        ):
            async with session.get(url) as answer:
                assert (answer.status, "CONSOLE_PORT and CONSOLE_TOKEN" in await answer.text()) == (503, True)
            await web.TCPSite(runner, GATEWAYS[1], port).start()  # the second of the two has it, and it alone
            for _ in range(4):
                async with session.post(f"{url}/login", data="x" * 500_000) as answer:
                    assert (answer.status, len(await answer.text())) == (200, 500_000)
            async with session.get(f"{url}/live") as answer:
                assert await answer.content.readany() == b"first"  # as it comes, not when it has ended
                heard.set()
                assert await answer.content.readany() == b"second"
    host = urlsplit(url).netloc
    assert told == [f"POST {host} 127.0.0.1"] * 4 + [f"GET {host} 127.0.0.1"]


def test_the_real_engine_gets_every_file_of_ours_that_its_image_and_its_compose_files_take() -> None:
    copied = [rest.split()[:-1] for stage in (0, 1) for rest in of("COPY", stage) if "--from" not in rest]
    assert {source.split("/")[0] for sources in copied for source in sources} <= set(OURS)
    assert {"deploy", "docker-compose.yml"} <= set(OURS)
    assert all((ROOT / name).exists() for name in OURS)


DOCKER = """#!/bin/sh
echo "$@" >>"$LOG"
case "$*" in
"compose run --rm init") [ -z "$BAD_ENV" ] ;;
"compose ps --quiet "*) if [ -z "$NONE" ]; then printf 'old1\\nold2\\n'; fi ;;
"compose ps --format "*) if [ -n "$SICK" ]; then printf 'healthy\\n\\n'; else printf 'healthy\\nhealthy\\n'; fi ;;
esac
"""


@each_case(
    ("trouble", "stopped", "ends"),
    [("", ["old1", "old2"] * 2, 0), ("BAD_ENV", [], 1), ("SICK", ["old1"], 1), ("NONE", [], 1)],
)
def test_parts_are_replaced_one_after_the_other_and_none_after_trouble(
    tmp_path: Path, trouble: str, stopped: list[str], ends: int
) -> None:
    """What an engine does with these commands is measured by hand (docs/cluster.md)."""
    place = tmp_path / (trouble or "none")
    (place / "deploy").mkdir(parents=True)
    for name, content in (("docker", DOCKER), ("sleep", "#!/bin/sh\n"), ("deploy/roll.sh", text("deploy/roll.sh"))):
        (place / name).write_text(content, "utf-8")
        (place / name).chmod(0o755)
    log = place / "log"
    environment = {"PATH": f"{place}:{os.environ['PATH']}", "LOG": str(log), "BAD_ENV": "", "SICK": "", "NONE": ""}
    environment |= {trouble: "1"} if trouble else {}
    words = ["sh", str(place / "deploy/roll.sh"), *reversed(ROLES)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
    said = log.read_text().splitlines()
    assert done.returncode == ends, done.stderr
    assert said[:2] == ["compose build init", "compose run --rm init"]
    assert [line.removeprefix("stop ") for line in said if line.startswith("stop ")] == stopped
    if not trouble:
        one = ["stop old1", "rm old1", "compose up -d --no-recreate worker", "compose ps --format {{.Health}} worker"]
        assert said[3:8] == ["compose ps --quiet worker", *one]


def test_no_engine_of_a_cluster_starts_without_a_password() -> None:
    """What RabbitMQ is given at its first start stays; PostgreSQL's image refuses an empty one itself."""
    rabbitmq = services()["rabbitmq"]
    assert rabbitmq["environment"]["RABBITMQ_DEFAULT_PASS"] == "${CLUSTER_PASSWORD:-}"
    shell, flag, script = rabbitmq["entrypoint"]
    stood_in = (
        script.replace("$$", "$").replace("exec docker-entrypoint.sh", "echo started").replace("sleep 60", "true")
    )
    for password, said in (("", "Set CLUSTER_PASSWORD in .env"), ("secret", "started")):
        environment = {"RABBITMQ_DEFAULT_PASS": password}
        done = subprocess.run(
            [shell, flag, stood_in], env=environment, capture_output=True, text=True, check=False, timeout=30
        )
        assert said in done.stdout + done.stderr
        assert (done.returncode == 0) is bool(password)
    assert not re.search(
        r"_PASS(WORD)?: (?!\$\{(CLUSTER|GRAFANA)_PASSWORD:-\}$)", text("docker-compose.yml"), re.MULTILINE
    )


def test_prometheus_looks_at_every_part_and_its_own_rules_stay() -> None:
    mounted = services()["prometheus"]["volumes"][0]
    file, place, _ = interpolated(mounted, {"CLUSTER_PASSWORD": "x"}).split(":")
    assert interpolated(mounted, {}) == f"./deploy/prometheus.yml:{place}:ro"
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
