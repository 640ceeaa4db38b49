# SPDX-License-Identifier: Apache-2.0
# A plain front for meson and ninja. Each target installs what it lacks (tools/need) and works from a fresh clone.

BUILD ?= build
DESTDIR ?=
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20

MESON_FLAGS ?=
SANITIZE = CC=clang meson setup $(BUILD)-sanitize -Dbuildtype=debugoptimized -Db_lundef=false \
	-Db_sanitize=address,undefined
FUZZ = CC=clang meson setup $(BUILD)-fuzz -Dbuildtype=debugoptimized -Db_lundef=false -Db_sanitize=address,undefined \
	-Dfuzz=true

.PHONY: all need run test test-long sanitize bench fuzz install format tidy clean

all:
	@tools/need build
	@meson setup $$(test -f $(BUILD)/build.ninja && echo --reconfigure) $(BUILD) -Dprefix=$(PREFIX) $(MESON_FLAGS) >/dev/null
	@ninja -C $(BUILD)

run: all
	@tools/need run
	$(BUILD)/src/cli/wattweir pfi examples/sample-sweep.csv
	$(BUILD)/src/cli/wattweir compare examples/sample-sweep.csv --cut 10,20,30,40

test: all
	@tools/need test
	meson test -C $(BUILD) --print-errorlogs

clean:
	rm -rf $(BUILD) $(BUILD)-sanitize $(BUILD)-fuzz
