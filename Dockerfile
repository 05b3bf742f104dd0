# FrostAgent. The first stage installs, the second one is what runs: no compiler, no pip, not root, one volume.
# `make image` performs the first stage without an engine and measures what it installs.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim-bookworm AS build
# EXTRAS=postgres adds the driver for PostgreSQL, broker that for RabbitMQ, mcp the client of MCP servers,
# otel what sends spans, web the readers of pages and PDFs; with commas between.
ARG EXTRAS=""
ENV VENV=/opt/frostagent BUILD=/opt/build PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY requirements.txt requirements-broker.txt requirements-build.txt requirements-mcp.txt requirements-otel.txt requirements-postgres.txt \
    requirements-web.txt ./
RUN python -m venv --without-pip "$VENV" \
    && for part in "" $(echo "$EXTRAS" | tr , " "); do \
        pip --python "$VENV/bin/python" install --require-hashes -r "requirements${part:+-$part}.txt" || exit 1; \
    done \
    && pip install --require-hashes --target "$BUILD" -r requirements-build.txt
COPY pyproject.toml setup.py .env.example README.md LICENSE ./
COPY adapters ./adapters
COPY bot ./bot
COPY config ./config
COPY frostagent ./frostagent
COPY tools ./tools
RUN PYTHONPATH="$BUILD" pip --python "$VENV/bin/python" install --no-deps --no-build-isolation .
# What nobody needs here, more than 20 MB. The packages' own tests. The serif font: pictures of text are written in the sans
# one. The AVIF codec: QQ sends pictures as JPEG, PNG, GIF or WebP, and Pillow does without (-f: not every wheel has it).
# The databases we do not speak to. The old websockets, Tk's pictures, all of Pygments' styles but the default.
# What compilers and type checkers read. The colours of every language but Python. rapidfuzz's second copy for AVX2: texts
# of a few hundred characters gain nothing by it, and it falls back to the other one.
RUN cd "$VENV"/lib/python*/site-packages \
    && find . -depth -type d \( -name tests -o -name testing \) ! -path ./frostagent/testing -exec rm -r {} + \
    && rm pylopdf_fonts_zh_cn/NotoSerifSC-Regular.otf \
    && rm -f PIL/_avif.* pillow.libs/libavif-* rapidfuzz/fuzz_cpp_avx2.* rapidfuzz/distance/metrics_cpp_avx2.* \
    && rm -r sqlalchemy/dialects/mssql sqlalchemy/dialects/mysql sqlalchemy/dialects/oracle \
    && rm -rf websockets/legacy pygments/styles/[!_d]* PIL/_imagingtk.* \
    && find . -type f \( -name '*.pyi' -o -name '*.pyx' -o -name '*.px[di]' -o -name '*.[ch]' -o -name '*.[ch]pp' \) -delete \
    && find pygments/lexers -type f -name '[_a-z]*' ! -name '__init__*' ! -name '_mapping*' ! -name 'python.*' \
        ! -name 'special.*' -delete

FROM python:${PYTHON}-slim-bookworm
# A program that may not be read shows nobody its environment, from its first moment on. Docker puts all of .env into that
# of every process it starts, and looks at the bot's health with one twice a minute: a tool's program could wait for it.
RUN pip uninstall --yes --root-user-action ignore pip setuptools wheel \
    && rm -r /usr/local/lib/python*/ensurepip \
    && chmod 711 "$(readlink -f /usr/local/bin/python3)" \
    && groupadd --gid 1000 frost \
    && useradd --uid 1000 --gid frost --home-dir /app --no-create-home --shell /usr/sbin/nologin frost \
    && install -d -o frost -g frost /app /app/data
COPY --from=build /opt/frostagent /opt/frostagent
ENV PATH=/opt/frostagent/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
COPY .env.example ./
# The default persona under the name it has in .env.example.
COPY config/personas ./config/personas
USER 1000:1000
VOLUME /app/data
EXPOSE 6199
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import http.client, os, sys; port = int(os.environ.get('WEB_PORT') or 8080); port or sys.exit(); c = http.client.HTTPConnection('127.0.0.1', port, timeout=4); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["python", "-m", "bot"]
