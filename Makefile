# minigraph: two commands on a fresh machine are `make gather` and `make test`. Each builds .venv by itself.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(BIN)/python -m minigraph
DATE   ?=
OPTS   ?=

.DEFAULT_GOAL := help
.PHONY: help gather brief compare lab test lint bench clean

help:  ## this list
	@echo "minigraph: make TARGET"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-10s %s\n", $$1, $$2 }'

gather:  ## the graph reads four sources at once, the loop does the same job: both timed, compared and drawn
	@$(call pictured,gather,--png outbox/gather.png)

brief:  ## the agent loop does the morning briefing: its trace and its chart
	@$(call pictured,brief,--png outbox/brief.png)

compare:  ## the loop against the graph, in figures
	@$(call pictured,compare,)

lab: $(VENV)/.notebooks  ## open the notebooks in JupyterLab
	@$(BIN)/jupyter lab notebooks

test: $(VENV)/.test  ## prove it all: lint, tests, every notebook compared with what it says
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@env -u ANTHROPIC_API_KEY -u OPENAI_API_KEY $(BIN)/python -m pytest

lint: $(VENV)/.test  ## ruff and mypy alone
	@$(BIN)/ruff check .
	@$(BIN)/mypy

bench: $(VENV)/.test  ## microseconds per node, beside a bare loop and a raw thread pool
	@$(BIN)/python tests/bench/bench.py

clean:  ## remove .venv and what tools left behind
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# gather and brief need the calendar and the pictures; where nothing can be installed they run bare and say so.
define pictured
if $(MAKE) --no-print-directory -s $(VENV)/.pictures; then $(RUN) $(1) $(2) $(if $(DATE),--date $(DATE)) $(OPTS); \
else echo "nothing could be installed, so this runs on Python alone" >&2; \
$(PYTHON) -m minigraph $(1) $(if $(DATE),--date $(DATE)) $(OPTS); fi
endef

# Each stamp stands for extras that were installed since pyproject.toml changed.
$(VENV)/.pictures: pyproject.toml constraints.txt | $(BIN)/python
	@$(call install,calendar$(comma)pictures)
$(VENV)/.notebooks: pyproject.toml constraints.txt | $(BIN)/python
	@$(call install,notebooks) && touch $(VENV)/.pictures
$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	@$(call install,test) && touch $(VENV)/.pictures $(VENV)/.notebooks

comma := ,
define install
echo "installing minigraph[$(1)] into $(VENV) (once; a minute or two)" >&2; \
if command -v uv >/dev/null 2>&1; then uv pip install -q -p $(BIN)/python -c constraints.txt -e ".[$(1)]"; \
else $(BIN)/python -m pip install -q --disable-pip-version-check --retries 2 --timeout 15 -c constraints.txt -e ".[$(1)]" \
2> $(VENV)/pip.log || { tail -n 3 $(VENV)/pip.log >&2; false; }; fi && touch $@
endef

$(BIN)/python:
	@if command -v uv >/dev/null 2>&1; then uv venv -q $(VENV); else $(PYTHON) -m venv $(VENV); fi
