#!/bin/sh
# A cluster's containers made anew one after the other, so that no account stays offline (docs/cluster.md):
#   sh deploy/roll.sh worker gateway
# One that is stopped leaves its part to the others; the next is touched only when the new one is healthy.
set -eu
[ $# -gt 0 ] || { echo "Name the services: sh deploy/roll.sh worker gateway" >&2; exit 1; }
cd "$(dirname "$0")/.."

docker compose build init
docker compose run --rm init # a mistake in .env ends this here, before anything is stopped
docker compose up -d init

for service in "$@"; do
    all=$(docker compose ps --quiet "$service")
    if [ -z "$all" ]; then
        echo "No container of $service runs, so there is none to replace: docker compose up -d $service" >&2
        exit 1
    fi
    for old in $all; do
        docker stop "$old" >/dev/null
        docker rm "$old" >/dev/null
        docker compose up -d --no-recreate "$service"
        left=120
        until [ "$(docker compose ps --format '{{.Health}}' "$service" | grep -c '^healthy$')" -ge "$(echo "$all" | wc -l)" ]; do
            left=$((left - 1))
            if [ "$left" = 0 ]; then
                echo "The new $service is not healthy after two minutes: docker compose logs --tail 50 $service" >&2
                exit 1
            fi
            sleep 1
        done
        echo "$service: ${old%"${old#????????????}"} is replaced"
    done
done
