# The front door. Every target sets up what it needs; what is up to date is left alone.
# Recipes run in this folder, so `make -C` works from anywhere, blanks in the path included.

SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup dev spark schedulers demo check test test-long lint fmt help-pages gen words bpf bench fuzz reproduce paper carried emulator-table docs dist old-peers lock clean

# Would keep bytecode from being written, and slow down every start.
unexport PYTHONDONTWRITEBYTECODE

# Whichever build of the extension is there: brought up to date, or as it is; a release where there is none.
.PHONY: any present
any present:
	@scripts/setup.sh $@

help: ## Say what there is.
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 24

setup: ## Make .venv with the farline command (release build).
	@scripts/setup.sh

dev: ## Make .venv with a development build of the extension: again in seconds after an edit.
	@scripts/setup.sh dev

spark: any ## Add PySpark to .venv (434 MB), for --engine pyspark and its tests; needs Java 17.
	@.venv/bin/uv pip install --quiet --python .venv/bin/python --require-hashes --no-deps \
	    -r requirements-spark.lock

schedulers: any ## Make .venv/schedulers with Snakemake and Rucio's client, for the tests of their plugins.
	@[ -x .venv/schedulers/bin/python ] || .venv/bin/uv venv --quiet --python .venv/bin/python .venv/schedulers
	@.venv/bin/uv pip install --quiet --python .venv/schedulers/bin/python --require-hashes --no-deps \
	    -r requirements-schedulers.lock

demo: setup ## Profile TCP over loopback and leave demo/report/report.html.
	@.venv/bin/python scripts/demo.py

check: present ## Check in a minute what was changed last: form, types, shape and the tests nearby.
	@.venv/bin/python -m scripts.check

test: any ## Run every test that this machine can run.
	@scripts/test.sh

test-long: any ## The same with more and new random cases, and an hour of UDT; for the night.
	@FARLINE_LONG=1 scripts/test.sh

lint: any ## Check form, types, layers, generated files and shape.
	@scripts/lint.sh

fmt: present ## Put sources into form.
	@cargo fmt --all
	@.venv/bin/ruff check --quiet --fix-only .
	@.venv/bin/ruff format --quiet .

help-pages: present ## Write tests/unit/cli/help anew: what every --help prints, for review.
	@FARLINE_WRITE_HELP=1 .venv/bin/python -m pytest -q tests/unit/cli/test_manual.py -k reviewed

words: present ## Write the catalogue of printed texts anew, for review.
	@.venv/bin/python -m tests.support.printed_texts

gen: ## Write what follows from crates/spec.
	@cargo xtask gen

bpf: ## Build the congestion controls that are BPF programs (needs clang).
	@$(MAKE) -C bpf

bench: setup ## Compare with peers: make bench NAME=tcp-vs-iperf3, or all without NAME.
	@.venv/bin/python benches/run.py $(if $(NAME),"$(NAME)")

fuzz: ## Fuzz the decoders and protocol machines: make fuzz TARGET=copy_sink SECONDS=600, or all for a minute.
	@TARGET="$(TARGET)" SECONDS_EACH="$(SECONDS)" scripts/fuzz.sh

reproduce: setup ## Reproduce the papers' figures into farline-reproduce: make reproduce SCALE=full, or quick.
	@.venv/bin/farline reproduce --all --resume --scale "$(or $(SCALE),quick)"

paper: any ## Write a report of the results in farline-reproduce into docs/paper: Markdown, HTML and PDF (needs Chromium).
	@.venv/bin/farline reproduce --paper --scale "$(or $(SCALE),quick)"
	@.venv/bin/python -m scripts.paper_pdf farline-reproduce/paper
	@mkdir -p docs/paper && cp -r farline-reproduce/paper/. docs/paper/ && echo "docs/paper/paper.pdf"

carried: ## Build the programs for hosts without farline: make carried MACHINES="x86_64 aarch64", or this processor's.
	@scripts/carried.sh $(MACHINES)

emulator-table: setup ## Measure the path emulator anew; write the table in docs/design/emulator.md.
	@short=0; for name in emulator-accuracy emulator-throughput; do \
	    .venv/bin/python benches/run.py "$$name" || short=1; done; \
	    .venv/bin/python benches/_emulator/table.py && exit $$short

docs: any ## Build the pages into docs/site.
	@.venv/bin/python -m sphinx --quiet --fail-on-warning -b html docs docs/site
	@echo "docs/site/index.html"

dist: any ## Build packages into dist: wheel, source, .deb, SBOM, checksums; or some: make dist PARTS="wheel deb".
	@.venv/bin/python -m scripts.dist $(PARTS) $(MACHINES)

old-peers: present ## Build earlier commits into ~/.cache/farline-old-peers, for the tests of old against new (half an hour).
	@.venv/bin/python -m scripts.old_peers

lock: setup ## Write the requirements*.lock files anew from pyproject.toml.
	@.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra analysis --extra portal --group dev \
	    --generate-hashes --no-emit-index-url --no-header --no-annotate pyproject.toml -o requirements.lock
	@echo 'pyspark>=4.0,<4.1' | .venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-header --no-annotate - -o requirements-spark.lock
	@echo 'ziglang>=0.15,<0.18' | .venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-header --no-annotate - -o requirements-dist.lock
	@printf 'rucio-clients>=41,<42\nsnakemake>=9.27,<10\n' | .venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-header --no-annotate - -o requirements-schedulers.lock

clean: ## Remove what was built; the store and reports stay.
	@rm -rf .venv target docs/site python/farline/_native*.so
	@find python tests benches -name __pycache__ -prune -exec rm -rf {} +
