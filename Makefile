# SPDX-License-Identifier: Apache-2.0
# A plain front for meson and ninja. Each target installs what it lacks (tools/need) and works from a fresh clone.

BUILD ?= build
DESTDIR ?=
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20

export BUILD FUZZ_SECONDS

.PHONY: all run test test-long sanitize fuzz bench install format tidy clean help

all: # optimised build in build/
	@tools/need build
	@tools/build normal

run: all # a simulated cluster of 64 GPUs that must do with 30 % less power for an hour
	@tools/need run
	$(BUILD)/src/cli/wattweir simulate scenarios/demo.yaml

test: # all tests: gcc optimised, clang with ASan and UBSan, fuzzing for FUZZ_SECONDS
	@tools/need build test
	@tools/run_tests main sanitize fuzz

test-long: # the slow ones as well: every suite, 300 s of fuzzing, clang-tidy
	@tools/need build test tidy
	@FUZZ_SECONDS=300 tools/run_tests main-long sanitize fuzz tidy

sanitize: # the tests but the slow ones, built by clang with ASan and UBSan, leaks on
	@tools/need build test
	@tools/run_tests sanitize

fuzz: # every fuzz target, FUZZ_SECONDS in all
	@tools/need build test
	@tools/run_tests fuzz

bench: all # benchmarks, with their figures
	@tools/need test
	@tools/build normal with-tests
	meson test -C $(BUILD) --benchmark --verbose --no-rebuild

install: # program, header and library under DESTDIR and PREFIX
	@tools/need build
	@tools/build normal "prefix=$$(realpath -m -- '$(PREFIX)')"
	destdir='$(DESTDIR)'; [ -z "$$destdir" ] || destdir=$$(realpath -m -- "$$destdir"); \
	meson install -C $(BUILD) --no-rebuild --destdir "$$destdir"

format: # brings all tracked C into the house format
	@tools/need test
	tools/check_format --fix

tidy: # clang-tidy over all sources
	@tools/need build test tidy
	@tools/run_tests tidy

clean:
	rm -rf $(BUILD) $(BUILD)-sanitize $(BUILD)-fuzz

help:
	@sed -n 's/^\([a-z-]*\):[^#]*# /make \1\t/p' Makefile
