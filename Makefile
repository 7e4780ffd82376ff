# SPDX-License-Identifier: BSD-2-Clause
#
# A thin front: Meson builds, scripts/ does the rest. `make help` lists what there is.

BUILD ?= build
ASAN = $(BUILD)-asan
TSAN = $(BUILD)-tsan
FUZZ = $(BUILD)-fuzz
SECONDS ?= 60
SANITIZE = env CC=clang scripts/build
# Clang's sanitizers leave symbols to their run-time (b_lundef), and old run-times know only
# address layouts without much randomness (setarch).
SANITIZE_OPTIONS = -Db_lundef=false -Doptimization=1
SANITIZED = setarch --addr-no-randomize scripts/check --slow 10

export ASAN_OPTIONS = handle_segv=2:handle_sigbus=2:handle_abort=0:detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS = halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS = halt_on_error=1:second_deadlock_stack=1

.DEFAULT_GOAL := all
.NOTPARALLEL:
.PHONY: all demo check lint unit model live soak torture bench asan tsan fuzz expected format install deps \
	clean help

all:		## build the program, build/weir
	@scripts/deps check build
	@scripts/build $(BUILD)

demo:		## install what is missing, build, and trace this machine for five seconds (root)
	@scripts/deps install build
	@scripts/build $(BUILD)
	@scripts/demo $(BUILD)

check:		## install what is missing, build, and run lint, unit, model and live tests (root)
	@scripts/deps install check
	@scripts/build $(BUILD)
	@scripts/check --build $(BUILD) lint unit model live

lint unit model: ## one suite of `check` (lint, unit, model: no root needed)
	@scripts/deps check check
	@scripts/build $(BUILD)
	@scripts/check --build $(BUILD) $@

live soak:	## suites on the live kernel: short; and long, 15 minutes and MINUTES=30 more (root)
	@scripts/deps check check
	@scripts/build $(BUILD)
	@scripts/check --build $(BUILD) --verbose $@

torture:	## weir in guests whose CPUs are stolen, MINUTES=20; fetches kernels and qemu (root)
	@scripts/deps install torture
	@scripts/build $(BUILD)
	@tests/torture/torture.py $(BUILD)

bench:		## measure weir and other tools; QUICK=1: 3 minutes; DOCS=1 renews docs/performance.md (root)
	@scripts/deps check build
	@scripts/build $(BUILD)
	@bench/run $(BUILD) $(if $(QUICK),quick) $(if $(DOCS),docs)

asan:		## unit and model tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/deps check check
	@$(SANITIZE) $(ASAN) $(SANITIZE_OPTIONS) -Db_sanitize=address,undefined
	@$(SANITIZED) --build $(ASAN) unit model

tsan:		## model tests, those with threads among them, under ThreadSanitizer
	@scripts/deps check check
	@$(SANITIZE) $(TSAN) $(SANITIZE_OPTIONS) -Db_sanitize=thread
	@$(SANITIZED) --build $(TSAN) model

fuzz:		## fuzz the readers, the stream, the decoder and the options, SECONDS=60 each
	@scripts/deps check check
	@$(SANITIZE) $(FUZZ) $(SANITIZE_OPTIONS) -Db_sanitize=address,undefined -Dfuzz=$(SECONDS)
	@$(SANITIZED) --build $(FUZZ) --verbose fuzz

expected:	## count the tests anew, after adding or removing some (root)
	@scripts/build $(BUILD)
	@scripts/check --build $(BUILD) --update lint unit model live

format:		## bring the C files into shape
	@tests/lint/format.py --fix

install:	## install program, library, headers and man pages (DESTDIR is heeded)
	@scripts/deps check build
	@scripts/build $(BUILD)
	@meson install -C $(BUILD) --no-rebuild

deps:		## install the Debian packages that building and testing need (root)
	@scripts/deps install check

clean:		## remove what was built
	@rm -rf $(BUILD) $(ASAN) $(TSAN) $(FUZZ)

help:		## this list
	@awk -F ':.*## ' '/^[a-z][a-z ]*:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile
