# Needs Python 3.11 or newer and nothing else. `make` or `make help` lists what there is.
#
# What make and pip say goes to standard error: the standard output of `make run` is the bot's alone.

VENV := .venv
PY := $(VENV)/bin/python
.DEFAULT_GOAL := help
.NOTPARALLEL:
# Where it is set, as many images do, every process of the tests compiles all of the bot and the libraries once more.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help run test test-all torture check format lint types imports docs image compose-test bench bench-compare lock clean

# Where the interpreter is gone (an upgraded system), what was installed for it is gone too.
$(shell [ -x $(PY) ] || rm -f $(VENV)/.run $(VENV)/.dev)

help: ## list what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

run: $(VENV)/.run ## install if need be, and start the bot (ARGS="chat", ARGS="version" ... for its other commands)
	@exec $(PY) -m bot $(ARGS)

test: $(VENV)/.dev ## install what the tests need, and run those that need nothing else (ARGS="-k name" for some)
	@$(PY) -m pytest $(ARGS)

test-all: $(VENV)/.dev ## these and those that need processes, a browser, PostgreSQL or RabbitMQ; what is missing is skipped
	@$(PY) -m pytest --system --dist loadgroup $(ARGS)

torture: $(VENV)/.dev ## kill the service at 400 moments, its journal in every state, and judge both ends' records (ARGS="--seed 2", ARGS=--cluster)
	@$(PY) -m tests.torture $(ARGS)

check: lint types imports test-all ## everything that a change must pass

format: $(VENV)/.dev ## put every file into the common form
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

lint: $(VENV)/.dev ## form and habits
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .

types: $(VENV)/.dev ## mypy --strict, and once more for the product as Windows runs it
	@$(PY) -m mypy
	@$(PY) -m mypy --platform win32 --cache-dir .mypy_cache/win32 frostagent adapters bot config tools

imports: $(VENV)/.dev ## who may import whom
	@$(VENV)/bin/lint-imports

docs: $(VENV)/.dev ## write the pages that list what the code declares (docs/settings.md, docs/cli.md)
	@$(PY) -m tests.reference

image: $(VENV)/.dev ## perform the Dockerfile's steps without an engine, start what they make, and measure it
	@$(PY) -m tests.dockerfile

compose-test: $(VENV)/.dev ## run the containers on a real engine, with stand-ins for QQ and the model
	@$(PY) -m tests.compose $(ARGS)

bench: $(VENV)/.dev ## what a message costs beside a bare floor, as ratios (ARGS="--rounds 5" for steadier ones)
	@$(PY) -m tests.bench $(ARGS)

bench-compare: $(VENV)/.dev ## the same for the bot as it is here beside that of another revision (BASE=main)
	@$(PY) -m tests.bench --compare $(or $(BASE),HEAD) $(ARGS)

PIN := CUSTOM_COMPILE_COMMAND="make lock" $(PY) -m piptools compile --quiet --strip-extras --generate-hashes \
	--allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links
EXTRAS := broker mcp otel postgres web
# Through setup.py: of pyproject.toml pip-tools reads the extras itself, and loses their markers (sys_platform).

lock: $(VENV)/.dev ## pin the versions of everything once more (ARGS=--upgrade for newer ones)
	@$(PIN) $(ARGS) --extra bot --output-file requirements.txt setup.py >&2
	@$(PIN) $(ARGS) --only-build-deps --build-deps-for wheel --output-file requirements-build.txt pyproject.toml >&2
	@for extra in dev $(EXTRAS); do $(PIN) $(ARGS) --extra bot --extra $$extra --constraint requirements.txt \
		--output-file requirements-$$extra.txt setup.py >&2 || exit 1; done

clean: ## remove .venv and everything else that can be made again (.env and data stay)
	@rm -rf $(VENV) build dist ./*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the virtual environment: filled only when something changed, made anew when it is broken ------
#
# A stamp is written at the very end; .unfinished stays behind only when an installation was killed.

$(VENV)/.run: pyproject.toml requirements.txt requirements-build.txt
	@$(call install,requirements.txt)
	@touch $@

$(VENV)/.dev: pyproject.toml requirements.txt requirements-build.txt requirements-dev.txt
	@$(call install,requirements-dev.txt)
	@touch $(VENV)/.run $@

PIP = $(PY) -m pip install -qq --no-input --disable-pip-version-check
RECENT := import sys; sys.exit(sys.version_info < (3, 11))

define install
{ [ ! -e $(VENV)/.unfinished ] && $(PY) -c '$(RECENT)' && $(PY) -m pip --version; } </dev/null >/dev/null 2>&1 \
	|| { $(make_venv); } || exit 1; \
echo "Installing $(1) into $(VENV); this takes a minute the first time ..." >&2; \
touch $(VENV)/.unfinished; \
$(PIP) --require-hashes -r requirements-build.txt -r $(1) </dev/null >&2 \
	&& $(PIP) --no-deps --no-build-isolation -e . </dev/null >&2; done=$$?; \
rm -f $(VENV)/.unfinished; \
exit $$done
endef

define make_venv
recent= python=; \
for candidate in $(or $(PYTHON),python3.13 python3.12 python3.11 python3 python); do \
	"$$candidate" -c '$(RECENT)' </dev/null >/dev/null 2>&1 || continue; \
	recent=$$candidate; \
	"$$candidate" -c 'import ensurepip, venv' </dev/null >/dev/null 2>&1 && python=$$candidate && break; \
done; \
if [ -z "$$recent" ]; then \
	echo "FrostAgent needs Python 3.11 or newer, and there is none ($(or $(PYTHON),python3): $$($(or $(PYTHON),python3) --version 2>&1 | head -n 1))." >&2; \
	echo "Install it, or say where it is: make run PYTHON=/path/to/python3.11" >&2; \
	exit 1; \
elif [ -z "$$python" ]; then \
	echo "$$recent has no venv module. On Debian or Ubuntu: apt-get install python3-venv" >&2; \
	exit 1; \
fi; \
rm -rf $(VENV) && mkdir $(VENV) && touch $(VENV)/.unfinished && "$$python" -m venv $(VENV) </dev/null >&2
endef
