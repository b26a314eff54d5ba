# SPDX-License-Identifier: GPL-2.0-only
#
# make            build/weir, one binary with the BPF object inside
# make help       everything else
#
# Variables: CC (gcc or clang, for user/), BPF_CLANG (14 or later, for bpf/), BUILD (default build),
# SANITIZE=1 (address and undefined-behaviour sanitizers; builds into build-sanitize).

SANITIZE ?= 0
ifeq ($(SANITIZE),1)
BUILD ?= build-sanitize
SANITIZE_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
BUILD ?= build
SANITIZE_FLAGS :=
endif

CC ?= gcc
BPF_CLANG ?= clang
OTHER_CLANG := clang-19
BPFTOOL ?= bpftool
PREFIX ?= /usr/local
VERSION := 0.1

MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
LIBS := libbpf libfyaml libpcap jansson
CORE_LIBS := libfyaml

CPPFLAGS += -D_GNU_SOURCE -DWEIR_VERSION='"$(VERSION)"' -Iinclude -Iuser -Iuser/core -Iuser/kernel -Iuser/cmd -I$(BUILD)
CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Werror -Wno-unused-parameter -Wmissing-prototypes -Wstrict-prototypes -Wformat=2 -Wshadow
ALL_CFLAGS = $(CFLAGS) -std=gnu11 $(WARNINGS) $(SANITIZE_FLAGS)
BPF_CFLAGS := -O2 -g -std=gnu11 -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter \
	-Wno-address-of-packed-member -Iinclude -Ibpf $(if $(MULTIARCH),-I/usr/include/$(MULTIARCH))

CORE_SRC := $(wildcard user/core/*.c)
KERNEL_SRC := $(wildcard user/kernel/*.c)
CMD_SRC := $(wildcard user/cmd/*.c) user/main.c
LIB_SRC := $(wildcard tests/lib/*.c)
BENCH_SRC := $(filter-out %.bpf.c,$(wildcard tests/bench/*.c))
objects = $(patsubst %.c,$(BUILD)/%.o,$(1))

UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/*_test.c))
BPF_TESTS := $(patsubst tests/bpf/%.c,$(BUILD)/tests/bpf/%,$(wildcard tests/bpf/*_test.c))
TOOLS := $(patsubst tests/tools/%.c,$(BUILD)/tests/tools/%,$(wildcard tests/tools/*.c))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all help deps demo test test-unit test-bpf test-e2e test-vm model tests bench bench-quick install clean format check

all: $(BUILD)/weir

help:
	@echo 'make              build $(BUILD)/weir'
	@echo 'make deps         install the Debian packages that building and testing need'
	@echo 'make demo         two namespaces, real traffic, a live table (root; sets itself up)'
	@echo 'make test         every test (root; sets itself up)'
	@echo 'make test-unit    pure C tests, no root (SANITIZE=1 for sanitizers)'
	@echo 'make test-bpf     tests of the BPF program by BPF_PROG_TEST_RUN (root)'
	@echo 'make model        leases, and the counting of connections, checked in every state by spin (minutes, to 8 GB)'
	@echo 'make test-e2e     tests with namespaces and real traffic (root)'
	@echo 'make test-vm      the program and commands on the kernels of Debian 12, emulated (minutes)'
	@echo 'make bench        speed and accuracy beside peers: writes docs/bench.md, some eight minutes (root; sets itself up)'
	@echo 'make bench-quick  speed and accuracy beside building blocks, a minute (root)'
	@echo 'make check        formatting, and no line longer than 120 columns'
	@echo 'make install      into PREFIX (default /usr/local)'
	@echo 'make clean        remove build and build-sanitize'

# ---- build ----

$(BUILD)/weir: $(call objects,$(CMD_SRC) $(KERNEL_SRC) $(CORE_SRC))
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs $(LIBS))

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Only user/kernel includes the skeletons, and one test; they must exist before that is compiled.
$(call objects,$(KERNEL_SRC)) $(BUILD)/tests/bpf/stack_test.o: $(BUILD)/weir.skel.h $(BUILD)/pace.skel.h

define compile_bpf
@mkdir -p $(@D)
$(BPF_CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -c -o $@ $<
endef

$(BUILD)/%.bpf.o: bpf/%.bpf.c
	$(compile_bpf)

$(BUILD)/%.skel.h: $(BUILD)/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# ---- tests ----

# Unit tests link without libbpf and user/kernel, so that the linker keeps the boundary of core.
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(call objects,$(CORE_SRC))
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs $(CORE_LIBS) cmocka) $(LDLIBS)

# The oracle has tests of its own, and knows as little of the kernel as core.
$(BUILD)/tests/unit/model_test $(BUILD)/tests/unit/model_connection_test: $(call objects,$(wildcard tests/lib/model*.c) tests/lib/packets.c)

# Of the bench only what needs no kernel.
BENCH_PURE := report page trace traffic trial_figures
$(BUILD)/tests/unit/bench_test: $(call objects,$(BENCH_PURE:%=tests/bench/%.c))
$(BUILD)/tests/unit/bench_test: LDLIBS := -ljansson

# What the tests of one subject share.
tests_of = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/$(1)_*_test.c))
$(call tests_of,compile): $(call objects,tests/unit/compile_by_hand.c tests/unit/compile_oracle.c)
$(call tests_of,ruleset): $(call objects,tests/unit/ruleset_bench.c)

# The parser, compiled for the host.
$(BUILD)/tests/unit/parse_test: $(call objects,tests/lib/packets.c $(wildcard tests/lib/random*.c))

$(BUILD)/tests/bpf/%: $(BUILD)/tests/bpf/%.o $(call objects,$(LIB_SRC) $(KERNEL_SRC) $(CORE_SRC))
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs $(LIBS) cmocka) -lpthread

# With cmocka because tests/lib asserts by it.
$(BUILD)/tests/tools/%: $(BUILD)/tests/tools/%.o $(call objects,$(LIB_SRC) $(KERNEL_SRC) $(CORE_SRC))
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs $(LIBS) cmocka) -lpthread

# The bench has BPF objects of its own: what drives the shipped one, and what it is compared with.
$(BUILD)/tests/bench/%.bpf.o: tests/bench/%.bpf.c
	$(compile_bpf)

$(BUILD)/tests/bench/%.skel.h: $(BUILD)/tests/bench/%.bpf.o
	$(BPFTOOL) gen skeleton $< name bench_$* > $@

$(call objects,$(BENCH_SRC)): $(patsubst %.bpf.c,$(BUILD)/%.skel.h,$(wildcard tests/bench/*.bpf.c))

$(BUILD)/tests/bench/bench: $(call objects,$(BENCH_SRC) tests/lib/packets.c $(KERNEL_SRC) $(CORE_SRC))
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs $(LIBS)) -lpthread

$(BUILD)/tests/vm/%: $(BUILD)/tests/vm/%.o $(call objects,$(LIB_SRC) $(KERNEL_SRC) $(CORE_SRC))
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs $(LIBS) cmocka) -lpthread

# Verifiers refuse, now and then, what one compiler makes of a source and take what another does. So the tests that ask
# them run with the objects of the other compiler, too; all but what holds a skeleton is shared.
OTHER_BUILD := $(BUILD)/$(OTHER_CLANG)
OTHER_SKELETONS := $(OTHER_BUILD)/weir.skel.h $(OTHER_BUILD)/pace.skel.h
OTHER_OBJECTS := $(patsubst %,$(OTHER_BUILD)/user/kernel/%.o,object pace)
OTHER_LOAD := $(OTHER_BUILD)/tests/vm/load-$(OTHER_CLANG)
OTHER_TESTS := $(OTHER_LOAD) $(OTHER_BUILD)/tests/bpf/stack_test-$(OTHER_CLANG)

$(OTHER_BUILD)/%.bpf.o: BPF_CLANG := $(OTHER_CLANG)
$(OTHER_BUILD)/%.bpf.o: bpf/%.bpf.c
	$(compile_bpf)

$(OTHER_BUILD)/%.skel.h: $(OTHER_BUILD)/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(OTHER_BUILD)/%.o: %.c $(OTHER_SKELETONS)
	@mkdir -p $(@D)
	$(CC) -I$(OTHER_BUILD) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(OTHER_BUILD)/tests/%-$(OTHER_CLANG): $(OTHER_BUILD)/tests/%.o $(OTHER_OBJECTS) \
		$(call objects,$(LIB_SRC) $(filter-out user/kernel/object.c user/kernel/pace.c,$(KERNEL_SRC)) $(CORE_SRC))
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs $(LIBS) cmocka) -lpthread

# Where it cannot be had, tests/bpf/clang_19_test says so.
HAS_OTHER := $(shell command -v $(OTHER_CLANG))
OTHER_TESTS_HERE := $(if $(HAS_OTHER),$(OTHER_TESTS))

tests: $(BUILD)/weir $(UNIT_TESTS) $(BPF_TESTS) $(OTHER_TESTS_HERE) $(TOOLS)

# The newcomer's two commands install what they need first; everything else expects it to be there.
test: deps
	$(MAKE) --no-print-directory tests
	BUILD=$(BUILD) exec tests/run unit bpf model e2e

test-unit: $(UNIT_TESTS)
	BUILD=$(BUILD) exec tests/run unit

test-bpf: $(BPF_TESTS) $(OTHER_TESTS_HERE)
	BUILD=$(BUILD) exec tests/run bpf

# `make test` has all but the largest configurations.
model:
	tests/model/run all

test-e2e: $(BUILD)/weir $(TOOLS)
	BUILD=$(BUILD) exec tests/run e2e

# Nobody else should use the machine meanwhile. Says at the end what was missed, which is no failure of the bench.
bench:
	@tests/deps bench
	$(MAKE) --no-print-directory $(BUILD)/weir $(BUILD)/tests/bench/bench
	$(BUILD)/tests/bench/bench --page docs/bench.md --json docs/bench.json $(BENCH_FLAGS) || [ $$? -eq 3 ]

bench-quick: $(BUILD)/tests/bench/bench
	$(BUILD)/tests/bench/bench --quick $(BENCH_FLAGS)

# Not part of `test`, but for a minute of it (tests/e2e/pace_vm_test): emulated machines are slow.
REPLAY_TESTS := $(patsubst tests/bpf/%.c,$(BUILD)/tests/bpf/%,$(wildcard tests/bpf/replay*_test.c))
VM_TESTS := tests/vm/commands $(BUILD)/tests/vm/load $(BUILD)/tests/vm/hotplug $(REPLAY_TESTS) $(if $(HAS_OTHER),$(OTHER_LOAD))
test-vm: $(BUILD)/weir $(TOOLS) $(VM_TESTS) $(BUILD)/tests/vm/many_cpus $(BUILD)/tests/vm/cost
	BUILD=$(BUILD) tests/vm/run $(VM_TESTS)
	BUILD=$(BUILD) tests/vm/run --steady tests/vm/pace
	BUILD=$(BUILD) RELEASES=bookworm tests/vm/run --cpus 16 $(BUILD)/tests/vm/many_cpus
	BUILD=$(BUILD) RELEASES=bookworm tests/vm/run --steady --cpus 16 $(BUILD)/tests/vm/cost tests/vm/memory

demo:
	@tests/deps demo
	$(MAKE) --no-print-directory $(BUILD)/weir $(TOOLS)
	BUILD=$(BUILD) tests/e2e/demo

# ---- the rest ----

# README's picture: a minute of connections replayed against the sample rule (root).
.PHONY: docs/warm-up.svg
docs/warm-up.svg: $(BUILD)/weir $(BUILD)/tests/tools/steady_capture
	$(BUILD)/tests/tools/steady_capture $(BUILD)/warm-up.pcap syn 80 1500 32 syn 80 0 12 syn 80 1500 24
	$(BUILD)/weir replay --plot $@ -r rules/warm-up-web.yaml $(BUILD)/warm-up.pcap

deps:
	@tests/deps

install: $(BUILD)/weir
	install -D -m 0755 $(BUILD)/weir $(DESTDIR)$(PREFIX)/sbin/weir
	install -d $(DESTDIR)$(PREFIX)/share/weir/rules
	install -m 0644 rules/* $(DESTDIR)$(PREFIX)/share/weir/rules/

FORMATTED := $(wildcard bpf/*.[ch] include/*.h user/*.c user/*/*.[ch] tests/*/*.[ch])

format:
	clang-format -i $(FORMATTED)

# clang-format does not break comments. `tr` leaves one byte of each character of UTF-8: a column.
check:
	clang-format --dry-run -Werror $(FORMATTED)
	@failed=0; for file in $(FORMATTED); do \
		LC_ALL=C tr -d '\200-\277' <$$file | LC_ALL=C expand | LC_ALL=C awk -v file=$$file \
			'length > 120 { print file ":" NR ": " length " columns, at most 120"; long = 1 } \
			END { exit long }' || failed=1; \
	done; exit $$failed

clean:
	rm -rf build build-sanitize

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
