# `make demo` runs the main job, `make test` passes all tests; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One build folder for everything, so that nothing is compiled twice for the same profile.
export CARGO_TARGET_DIR ?= $(CURDIR)/target

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml 2>/dev/null) Cargo.toml $(wildcard Cargo.lock)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9%-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: doctor
doctor: ## say what this machine lacks
	@PYTHON="$(PYTHON)" .ci/doctor

.PHONY: build
build: $(VENV)/.built ## compile the extension: the command in .venv/bin/fanin

.PHONY: demo
demo: $(VENV)/.built ## web-search and query traffic on a leaf-spine fabric: table and page
	$(BIN)/fanin run scenarios/demo.toml -o out/demo --force
	@echo "report: $$($(BIN)/fanin report out/demo)"

.PHONY: test
test: ## every test there is on this machine, and what each part of them took
	@rm -f $(CARGO_TARGET_DIR)/timed
	@status=0; { $(MAKE) --no-print-directory --jobs 2 --output-sync=line rust-test compiled && \
	  $(MAKE) --no-print-directory python-test; } || status=$$?; .ci/timed; exit $$status

# What Python tests need, beside the Rust tests: the largest crates compile one after the other, and packages wait for the network.
.PHONY: compiled
compiled:
	@.ci/timed "site: programs" .ci/engine >/dev/null
	@$(MAKE) --no-print-directory $(VENV)/.built $(VENV)/.dev

.PHONY: rust-test
rust-test: doctor ## unit tests, lints, walk-throughs
	.ci/timed "rustfmt" cargo fmt --all --check
	.ci/timed "Rust tests: build" cargo test --workspace --quiet --no-run
	PROPTEST_RNG_SEED=2026 .ci/timed "Rust tests: run" cargo test --workspace --quiet --no-fail-fast
	.ci/timed "clippy" cargo clippy --workspace --all-targets --quiet -- -D warnings
	.ci/timed "macOS, Windows: check" .ci/portable
	.ci/timed "walk-throughs" $(PYTHON) .ci/drills

MUTANTS ?= crates/dataplane/src/*.rs

.PHONY: mutants
mutants: ## put mistakes into MUTANTS=GLOB and list those that the crate's own tests do not notice (docs/dev/mutants.md)
	.ci/mutants $(foreach glob,$(MUTANTS),'$(glob)')

.PHONY: mutants-changed
mutants-changed: ## those in the lines that differ from SINCE=main, a draw, tests for WITHIN=180 seconds
	.ci/mutants --changed '$(or $(SINCE),main)' --within $(or $(WITHIN),180)

.PHONY: soak
soak: ## property tests of the simulator with other cases each time, CASES=1000 of each; SOAK=rcm: those whose names have that
	FANIN_SOAK=$(or $(CASES),1000) cargo test --quiet -p fanin-sim --test fidelity $(SOAK)

.PHONY: soak-watch
soak-watch: ## an hour of `fanin watch` at full rate, SECONDS=3600: memory flat within 1 %, counts exact
	FANIN_SOAK_S=$(or $(SECONDS),3600) $(BIN)/python -m pytest -q -s tests/python/test_watch.py -k memory_is_flat

.PHONY: drills
drills: ## apply the walk-throughs of CONTRIBUTING.md to a copy of the project and test it
	$(PYTHON) .ci/drills

.PHONY: python-test
python-test: $(VENV)/.built $(VENV)/.dev ## tests of package, command line and report, types, lints
	@.ci/optional
	@echo "SKIPPED: the comparison with ns-3, a target of its own: make ns3-test"
	@echo "SKIPPED: clock rates of the RTL by place and route (installs nextpnr), a target of its own: make rtl-fmax"
	@echo "SKIPPED: all rows of the comparison with a switch, a target of its own: make hardware-test"
	@echo "SKIPPED: the comparison with this machine's kernel (root, a quiet machine, minutes), a target of its own: make linux-test"
	.ci/timed "ruff" $(BIN)/python -m ruff check python tests/python tests/linux examples site dataplane
	.ci/timed "mypy" $(BIN)/python -m mypy
	.ci/timed "walk-throughs: Python" $(BIN)/python .ci/drills python
	.ci/timed "site" $(MAKE) --no-print-directory site
	.ci/timed "Python tests" $(BIN)/python -m pytest -q --numprocesses auto --dist loadfile --no-loadscope-reorder --deselect tests/linux/test_against_kernel.py

install-%: ## install bpf, chromium, iverilog, node, tshark, valgrind, verilator or yosys, which some tests need, as root on Debian
	.ci/optional install $*

.PHONY: model
model: ## every order in which threads of one run can meet, one interruption more than the tests try, in minutes; MODEL=4: two
	FANIN_MODEL=$(or $(MODEL),3) cargo test --package fanin-sim --test model -- --nocapture

.PHONY: tsan
tsan: ## data races between the threads of one run; needs rustup's nightly toolchain with rust-src, and ten minutes
	RUSTFLAGS="-Zsanitizer=thread" cargo +nightly test -Zbuild-std --target $(FUZZ_HOST) --target-dir $(CARGO_TARGET_DIR)/tsan \
	  --package fanin-sim --test fidelity parts::w

# Sanitizer coverage is a part of the stable compiler; libFuzzer is C++ that its crate compiles.
FUZZ_HOST = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_COVERAGE := $(addprefix -Cllvm-args=-sanitizer-coverage-,level=4 inline-8bit-counters pc-table trace-compares)
FUZZ_SECONDS ?= 60
FUZZ_OUT = $(CARGO_TARGET_DIR)/fuzz

.PHONY: fuzz
fuzz: ## hostile bytes for all that reads files and frames, FUZZ_SECONDS=60 for each target; FUZZ="capture csv" some of them
	CARGO_TARGET_DIR=$(FUZZ_OUT) RUSTFLAGS="-Cpasses=sancov-module $(FUZZ_COVERAGE)" \
	  cargo build --quiet --package fanin-fuzz --features libfuzzer --profile fuzz --target $(FUZZ_HOST)
	cargo run --quiet --package fanin-fuzz --example seeds -- $(FUZZ_OUT)/seeds > $(FUZZ_OUT)/targets
	@mkdir -p $(FUZZ_OUT)/found; while read -r name longest; do \
	  case " $(or $(FUZZ),$$name) " in *" $$name "*) ;; *) continue ;; esac; \
	  echo "fuzzing $$name for $(FUZZ_SECONDS) s"; mkdir -p $(FUZZ_OUT)/corpus/$$name crates/fuzz/found/$$name; \
	  TMPDIR=$(firstword $(wildcard /dev/shm /tmp)) FUZZ_TARGET=$$name $(FUZZ_OUT)/$(FUZZ_HOST)/fuzz/fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=$$longest -timeout=10 \
	    -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix=$(FUZZ_OUT)/found/$$name- \
	    $(FUZZ_OUT)/corpus/$$name $(FUZZ_OUT)/seeds/$$name crates/fuzz/found/$$name >$(FUZZ_OUT)/$$name.log 2>&1 </dev/null \
	    || { tail -n 40 $(FUZZ_OUT)/$$name.log; echo "found something: see CONTRIBUTING.md, Fuzzing" >&2; exit 1; }; \
	  grep -E 'DONE|number_of_executed_units' $(FUZZ_OUT)/$$name.log; done < $(FUZZ_OUT)/targets

.PHONY: bench
bench: $(VENV)/.built ## packet-hops per second, instructions, memory, start-up, features; and ns-3 beside it
	@if [ -e /usr/include/ns3/core-module.h ]; then $(MAKE) -s -C benches/ns3; fi
	$(BIN)/fanin bench --peers $(BENCH)
ifeq ($(BENCH),)
	$(BIN)/fanin bench --start
	@if command -v valgrind >/dev/null; then $(BIN)/fanin bench --features; \
	  else echo "SKIPPED: what features cost: valgrind is not installed; as root: make install-valgrind"; fi
endif

.PHONY: bench-htsim
bench-htsim: htsim-peer $(VENV)/.built ## paired rounds with csg-htsim: HTSIM=/path/to/it; BENCH="W1 --rounds 9 --json" what fanin bench takes besides
	$(BIN)/fanin bench --beside htsim $(BENCH)

.PHONY: htsim-peer
htsim-peer:
	@$(MAKE) -s -j2 -C benches/htsim HTSIM="$(abspath $(HTSIM))"

.PHONY: reproduce
reproduce: $(VENV)/.built ## all figures of all papers in full, into out/reproduce
	$(BIN)/fanin reproduce --all

.PHONY: whatif-truth
whatif-truth: $(VENV)/.built $(VENV)/.dev ## runs hidden behind each input, and whether fanin whatif finds their remedies (docs/dev/whatif-measured.md)
	$(BIN)/python tests/python/whatif_truth.py $(INPUTS)

.PHONY: ns3-test
ns3-test: $(VENV)/.built $(VENV)/.dev ## compare with ns-3 3.37, where libns3-dev is installed
	@if [ ! -e /usr/include/ns3/core-module.h ]; then \
	  echo "ns-3 is not installed; Debian 12, as root: apt-get install libns3-dev g++" >&2; exit 1; fi
	$(MAKE) -s -C benches/ns3
	$(BIN)/python -m pytest -q benches/ns3 tests/ns3

.PHONY: hardware-test
hardware-test: $(VENV)/.built ## 145 settings of a Tofino, row by row, into out/hardware; ARGS=--write refreshes docs/dev/tofino.md, ARGS=--try experiments
	$(BIN)/python tests/hardware/against_tofino.py $(ARGS)

.PHONY: linux-test
linux-test: $(VENV)/.built $(VENV)/.dev ## compare with the kernel of this machine: root, two quiet CPUs, seven minutes; into out/linux
	FANIN_LINUX_TEST=1 $(BIN)/python -m pytest -q -s -rs tests/linux

.PHONY: linux-docs
linux-docs: $(VENV)/.built ## tables and plots of the pages on the Linux kernel from the runs that make linux-test left in out/linux
	$(BIN)/python tests/linux/campaign.py --from out/linux/kernel.json --docs --reference

.PHONY: linux-demo
linux-demo: $(VENV)/.built $(VENV)/.dev ## S-ECN beside DCTCP on this machine's TCP, by BPF: root, two CPUs, clang, libbpf, three minutes; into out/linux-demo
	$(BIN)/python tests/linux/demo.py --measure $(ARGS)

.PHONY: bpf
bpf: ## compile the BPF programs of dataplane/linux and what loads them, into target/bpf
	$(MAKE) -s -C dataplane/linux OUT=$(CARGO_TARGET_DIR)/bpf
	@echo "$(CARGO_TARGET_DIR)/bpf/fanin-bpf"

.PHONY: rtl-fmax
rtl-fmax: $(VENV)/.made ## clock rates of the RTL on an ECP5 by nextpnr, a hint, held against those of docs/dev/rtl.md; ARGS=--write writes them
	$(BIN)/python -m pip install --quiet $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["fmax"])')
	$(BIN)/python dataplane/rtl/synth.py --fmax $(ARGS)

.PHONY: rtl-synth
rtl-synth: ## LUTs and flip-flops of the RTL by yosys, held against those of docs/dev/rtl.md; ARGS=--write writes them
	$(PYTHON) dataplane/rtl/synth.py $(ARGS)

.PHONY: sweep-kills
sweep-kills: $(VENV)/.built $(VENV)/.dev ## kill a sweep at KILLS=100 random moments: nothing lost, nothing there twice; four minutes
	FANIN_SWEEP_KILLS=$(or $(KILLS),100) $(BIN)/python -m pytest -q tests/python/test_sweep.py -k killed_at_any_time

.PHONY: statistics
statistics: $(VENV)/.built $(VENV)/.dev ## tables of docs/dev/statistics-measured.md: coverage, false verdicts, races and the stop rule on stored seeds; an hour
	$(BIN)/python tests/python/simulated.py 400

.PHONY: site
site: $(VENV)/.built $(VENV)/.dev ## the documentation with the engine in it, into target/site/html
	$(BIN)/python site/build.py $(CARGO_TARGET_DIR)/site $$(.ci/engine)

.PHONY: site-serve
site-serve: site ## show it at http://127.0.0.1:8000, to this machine alone
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory $(CARGO_TARGET_DIR)/site/html 8000

.PHONY: wheel
wheel: $(VENV)/.made ## a wheel into dist/, tried from an empty folder in an environment of its own; ten minutes
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin build --release --quiet -o dist
	rm -rf $(CARGO_TARGET_DIR)/wheel && $(PYTHON) -m venv $(CARGO_TARGET_DIR)/wheel
	$(CARGO_TARGET_DIR)/wheel/bin/pip install -q --disable-pip-version-check "$$(ls -t dist/*.whl | head -n 1)"
	.ci/try-installed $(CARGO_TARGET_DIR)/wheel/bin/fanin

.PHONY: schema
schema: $(VENV)/.built ## write the generated files anew
	$(BIN)/fanin schema --reference > docs/scenario.md
	$(BIN)/fanin schema --python > python/fanin/_scenario_types.py
	$(BIN)/fanin schema --counters > docs/counters.md

.PHONY: clean
clean: ## remove what was built
	rm -rf $(VENV) target out dist .pytest_cache .mypy_cache .ruff_cache python/fanin/_core*.so
	find python tests examples -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.made: pyproject.toml
	@PYTHON="$(PYTHON)" .ci/doctor
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python .ci/requirements.py build | .ci/timed "Python packages: build" $(BIN)/python -m pip install -q --disable-pip-version-check -r /dev/stdin
	@touch $@

$(VENV)/.built: $(VENV)/.made $(RUST_SOURCES)
	@echo "building the extension; minutes the first time"
	@PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) \
	  .ci/timed "extension: build" $(BIN)/maturin develop --release --quiet >$(VENV)/build.log 2>&1 || { cat $(VENV)/build.log >&2; exit 1; }
	@touch $@

$(VENV)/.dev: $(VENV)/.made
	$(BIN)/python .ci/requirements.py dev | .ci/timed "Python packages: tests" $(BIN)/python -m pip install -q --disable-pip-version-check -r /dev/stdin
	@touch $@
