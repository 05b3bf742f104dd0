# A PostgreSQL for the compose test, from the base image that is there for the bot anyway.
FROM python:3.11-slim-bookworm
RUN apt-get update -q && apt-get install -y -q --no-install-recommends postgresql && rm -rf /var/lib/apt/lists/*
USER postgres
RUN cd /tmp && /usr/lib/postgresql/15/bin/initdb -D /tmp/data -U frost --auth=trust -E UTF8 --locale=C \
    && echo "host all all all trust" >> /tmp/data/pg_hba.conf
ENTRYPOINT ["/usr/lib/postgresql/15/bin/postgres", "-D", "/tmp/data", "-c", "listen_addresses=*"]
