# SPDX-License-Identifier: GPL-2.0-only
#
# make            build/weir, one binary with the BPF object inside
# make help       everything else
#
# Read on in this order: settings, the program, the tests, the bench, the checks, the rest.

# ---- settings ----

# WITHOUT="page", "metrics", "cluster" or "confine" leaves out features, and with them their libraries: `metrics` is `weir run --listen` (libmicrohttpd), `page` what it shows at / (libjs-dygraphs), `cluster` limits that hosts share (hiredis, nettle, gnutls),
# `confine` what processes that stay give up (libcap-ng, libseccomp). `metrics` and `cluster` are a house each, user/serve and user/cluster, of which only no_NAME.c is left.
# Variables: PREFIX (default /usr/local) and DESTDIR (for packages) of `make install`, CC (gcc or clang, for user/ and tests/), BPF_CLANG (14 or later, for bpf/), BUILD (default build),
# DEFINES (-D options for all of it: tests build other versions of weir), V=1 (show whole commands), SANITIZE=1 (address and undefined-behaviour sanitizers; builds into build-sanitize).
SANITIZE ?= 0
ifeq ($(SANITIZE),1)
BUILD ?= build-sanitize
SANITIZE_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
BUILD ?= build
SANITIZE_FLAGS :=
endif

# Where the BPF objects and their skeletons are. They are the same for every compiler and flags of user/, so builds beside this one share them.
BPF_BUILD ?= $(BUILD)

WITHOUT ?=
has = $(if $(filter $(1),$(WITHOUT)),,yes)

CC ?= gcc
BPF_CLANG ?= clang
OTHER_CLANG := clang-19
BPFTOOL ?= bpftool
PKG_CONFIG ?= pkg-config
DYGRAPHS ?= /usr/share/javascript/dygraphs
PREFIX ?= /usr/local
SBINDIR ?= $(PREFIX)/sbin
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/weir
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
UNITDIR ?= $(PREFIX)/lib/systemd/system
# Of what is installed elsewhere the configuration is there, too.
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX:/=)),/etc,$(PREFIX:/=)/etc)
VERSION := 0.1

MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
CORE_LIBS = $(shell $(PKG_CONFIG) --libs libfyaml jansson $(if $(call has,cluster),nettle))
LIBS = $(shell $(PKG_CONFIG) --libs libbpf libfyaml libpcap libmnl jansson ncursesw $(if $(call has,metrics),libmicrohttpd) $(if $(call has,cluster),hiredis nettle gnutls) $(if $(call has,confine),libcap-ng libseccomp))
CMOCKA = $(shell $(PKG_CONFIG) --libs cmocka)

# Headers are included by their room ("base/util.h"); these are the directories that rooms stand in.
USER_INCLUDES := $(addprefix -Iuser,/lib/core /lib/kernel /lib /tools /tools/suggest /cluster) -Iuser
CPPFLAGS += -D_GNU_SOURCE $(DEFINES) -Iinclude $(USER_INCLUDES) -Ibpf $(addprefix -I,$(sort $(BUILD) $(BPF_BUILD)))
CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Werror -Wno-unused-parameter -Wmissing-prototypes -Wstrict-prototypes -Wformat=2 -Wshadow

# What Debian's dpkg-buildflags gives with hardening=+all, for whoever builds weir. _FORTIFY_SOURCE needs a build that
# optimises, gets in the way of sanitizers, and may be given by who builds (a level of 3, say).
optimises = $(filter-out -O0,$(lastword $(filter -O%,$(CFLAGS))))
FORTIFY = $(if $(SANITIZE_FLAGS)$(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,$(if $(optimises),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
STACK_CLASH := $(shell echo | $(CC) -Werror -fstack-clash-protection -x c -c -o /dev/null - 2>/dev/null && echo -fstack-clash-protection)
HARDENING = -fPIE -fstack-protector-strong $(STACK_CLASH) -Wformat -Werror=format-security $(FORTIFY)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now $(LDFLAGS)

# No file says where it was built: two builds in two directories are the same.
PATHS_MAPPED = -ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(BUILD)/=build/

ALL_CFLAGS = $(CFLAGS) -std=gnu11 $(WARNINGS) $(HARDENING) $(PATHS_MAPPED) $(SANITIZE_FLAGS)
# Lines of inlined code are those of the call: half of clang's time, of the object and of what the kernel checks of lines at a load was for more.
BPF_CFLAGS = -O2 -g -gno-inline-line-tables -std=gnu11 -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter \
	-Wno-address-of-packed-member -ffile-prefix-map=$(CURDIR)=. $(DEFINES) -Iinclude -Ibpf $(if $(MULTIARCH),-I/usr/include/$(MULTIARCH))

# A short line for each step: $(call step,CC,$<). V=1 shows the commands instead, make -s neither.
V ?= 0
ifeq ($(V),1)
step =
else ifneq ($(findstring s,$(firstword -$(MAKEFLAGS))),)
step = @
else
step = @printf '  %-7s %s\n' $(1) '$(2)';
endif

# Write $(1) into $@, unless it is there already: what depends on $@ is made again only when the text is another.
define write_if_changed
@mkdir -p $(@D)
@text='$(subst ','\'',$(strip $(1)))'; printf '%s\n' "$$text" | cmp -s - $@ || printf '%s\n' "$$text" >$@
endef

sources = $(sort $(shell find $(1) -name '*.c' -not -name '*.bpf.c'))
objects = $(patsubst %.c,$(BUILD)/%.o,$(1))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: FORCE all help deps demo demo-cluster man units install uninstall deb release test-release clean compile_commands.json \
	tests deep-tests test test-quick test-deep test-all faults soak mutants coverage test-unit test-bpf test-e2e test-vm budgets check-budgets test-kernels test-arm64 test-debian fuzz fuzzers model bench bench-quick bench-compare bench-shortcuts \
	check check-changed check-format check-columns check-words check-subjects check-arrows check-promises check-symbols check-weight check-shell check-cppcheck check-analyzer check-tidy format

all: $(BUILD)/weir

help:
	@echo 'make              build $(BUILD)/weir'
	@echo 'make install      weir, man pages, docs, sample rules and completion, into PREFIX (default /usr/local)'
	@echo 'make uninstall    takes away again what it installed'
	@echo 'make deb          a package for Debian, in $(BUILD)/deb, by its own tools'
	@echo 'make release      REV=TAG or COMMIT: source archive, packages, SBOM and their sums, in $(BUILD)/release; SIGN_KEY=KEY signs them'
	@echo 'make man          build the man pages only'
	@echo 'make deps         install the Debian packages that building, testing and checking need'
	@echo 'make demo         two namespaces, real traffic, a live table (root; sets itself up)'
	@echo 'make demo-cluster three hosts share one limit through a Redis; one dies, the store stops (root)'
	@echo
	@echo 'make test         claims of every kind, and the quick checks (root; sets itself up; within 8 minutes)'
	@echo 'make test-quick   the quicker ones, while working (root, within 3 minutes)'
	@echo 'make test-deep    what CI runs after make test: the longer ones (root, within 20 minutes)'
	@echo 'make test-all     everything there is: mutants, faults of every call, other kernels, Debian with systemd (root, hours)'
	@echo 'make tests        build the tests and run none'
	@echo 'make test-unit    pure C tests, no root'
	@echo 'make test-bpf     tests of the BPF program by BPF_PROG_TEST_RUN (root)'
	@echo 'make test-e2e     tests with namespaces and real traffic (root)'
	@echo 'make faults       system calls of every command fail, and it is killed at them, in turn (root)'
	@echo 'make soak         an hour of traffic, reloads, restarts; counters add up, nothing grows (root)'
	@echo 'make mutants      known faults, one by one: the test named for each must notice (root, half an hour; MUTANTS="yaml*": some)'
	@echo 'make coverage     lines of user/ that the tests never reach (root; SUITES="unit/*": by some of them)'
	@echo 'make test-vm      the program and commands on the kernels of Debian 12, emulated (minutes)'
	@echo 'make test-kernels the program on the kernels of Debian 12, 13 and its newest backport, emulated (minutes)'
	@echo 'make test-arm64   the same, built for arm64, on its kernel of Debian 12 (minutes)'
	@echo 'make test-release a release twice with the same bytes, signed, for arm64, as an RPM and in an image (root, half an hour)'
	@echo 'make test-debian  the package in a Debian 12 with systemd, emulated (minutes)'
	@echo 'make check-budgets  what packets and the verifier cost, in counts that no machine changes, against tests/budgets (root, minutes; BUDGETS_FLAGS=--quick: seconds)'
	@echo 'make budgets      writes these counts into tests/budgets: the commit says why'
	@echo 'make fuzz         hostile input to every reader, 5 s each; FUZZ_SECONDS=3600 FUZZ_ONLY=rules: longer, one of them'
	@echo 'make model        leases, counting of connections, shares of a cluster, checked in every state by spin (minutes, to 8 GB)'
	@echo 'make bench        speed and accuracy beside peers: writes docs/bench.md, less than ten minutes (root; sets itself up)'
	@echo 'make bench-quick  speed and accuracy beside building blocks, a minute (root)'
	@echo 'make bench-compare  speed beside weir of another commit, in turns, some five minutes; fails when a row is worse by more than its spread'
	@echo '                  (root; BASE=REV: that commit, else the last release; RECORD=1: its table in docs/internals/bench-changes.md)'
	@echo 'make bench-shortcuts  what each shortcut of the program is worth: its table in docs/internals/bench-changes.md, some five minutes (root)'
	@echo
	@echo 'make check        all of the following, two minutes on two CPUs; then only what has changed'
	@echo '  check-format      clang-format'
	@echo '  check-columns     no line longer than 120 columns'
	@echo '  check-words       none of our words where the field has one, and plain English'
	@echo '  check-links       links of the pages lead somewhere'
	@echo '  check-subjects    no commit since the last release has a subject above 72 characters, or is large and has no body'
	@echo '  check-arrows      includes go one way (user/rooms), and sources of a room use each other in no circle'
	@echo '  check-symbols     what pages and comments name of the source is there'
	@echo '  check-weight      functions, frames, sources and lines of user/, and words of docs/, are not more than tests/weight says'
	@echo '  check-shell       shellcheck'
	@echo '  check-cppcheck    cppcheck'
	@echo '  check-analyzer    gcc -fanalyzer'
	@echo '  check-tidy        clang-tidy, with the checks in .clang-tidy'
	@echo 'make format       let clang-format put it right'
	@echo
	@echo 'make compile_commands.json   how each file is compiled, for editors'
	@echo 'make clean        remove build, build-sanitize and build-fuzz'
	@echo
	@echo 'V=1 shows whole commands; -j uses all CPUs; SANITIZE=1 builds with sanitizers, into build-sanitize.'

# ---- the program ----

# Two archives: what is pure (core, sentinel, and a room each of cluster and suggest), which unit tests link alone; and everything else but main().
# Of a feature that is left out there is only what says so, no_NAME.c.
left_out := $(if $(call has,cluster),%/no_cluster.c,$(filter-out %/no_cluster.c,$(call sources,user/cluster))) \
	%/host/$(if $(call has,confine),no_)confine.c user/serve/$(if $(and $(call has,page),$(call has,metrics)),no_)page.c \
	$(if $(call has,metrics),%/no_server.c,$(filter-out %/no_server.c,$(call sources,user/serve)))
core_SRC := $(filter-out $(left_out),$(call sources,user/lib/core user/cluster/shares user/sentinel user/tools/suggest/peaks))
weir_SRC := $(filter-out user/main.c $(core_SRC) $(left_out),$(call sources,user))
CORE := $(BUILD)/libweir-core.a
WEIR := $(BUILD)/libweir.a

$(BUILD)/weir: $(BUILD)/user/main.o $(WEIR) $(CORE)
	$(call step,LD,$@) $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(CORE): $(call objects,$(core_SRC))

# The store's part of cluster limits is in the object as it is.
$(BUILD)/user/cluster/shares/ledger.o: user/cluster/shares/ledger.lua

$(WEIR): $(call objects,$(weir_SRC))

# The page is in the object as it is, and the charts with it. Private: what it depends on has the usual flags.
$(BUILD)/user/serve/page.o: private CPPFLAGS += -DWEIR_DYGRAPHS='"$(DYGRAPHS)"'
$(BUILD)/user/serve/page.o: $(wildcard user/serve/page/*) $(DYGRAPHS)/dygraph.min.js
$(DYGRAPHS)/dygraph.min.js:
	@echo 'make: the page needs $@ of libjs-dygraphs: "make deps" installs it, WITHOUT=page does without' >&2; false

# From nothing each time, as `ar` would keep members whose source has gone; and by `q`, which takes two members of one name.
$(BUILD)/lib%.a: $(BUILD)/lib%.members
	$(call step,AR,$@) rm -f $@ && ar qcs $@ $(filter %.o,$^)

$(BUILD)/lib%.members: FORCE
	$(call write_if_changed,$($(patsubst weir-%,%,$*)_SRC))

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call step,CC,$<) $(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Everything is compiled again when the compiler or its flags are others.
$(BUILD)/flags: FORCE
	$(call write_if_changed,$(CC) $(CPPFLAGS) $(ALL_CFLAGS))

$(BPF_BUILD)/bpf-flags: FORCE
	$(call write_if_changed,$(BPF_CLANG) $(BPF_CFLAGS))

# Which release and commit this is, in a file that only user/cli/version.c includes. A tree that cannot tell says so.
# An archive that git made, or a package's source, has it in .commit.
COMMIT = $(or $(shell GIT_OPTIONAL_LOCKS=0 git --git-dir=.git describe --always --dirty --tags --match 'v[0-9]*' --abbrev=7 2>/dev/null), \
	$(shell grep '^[0-9a-fv]' .commit 2>/dev/null))
$(BUILD)/commit.h: FORCE
	$(call write_if_changed,#define WEIR_RELEASE "$(VERSION) ($(or $(COMMIT),no git))")

$(BUILD)/user/cli/version.o: | $(BUILD)/commit.h

# The BPF objects, each in a skeleton: a header that holds its bytes.
SKELETONS := $(patsubst bpf/%.bpf.c,$(BPF_BUILD)/%.skel.h,$(wildcard bpf/*.bpf.c))

define compile_bpf
@mkdir -p $(@D)
$(call step,BPFCC,$<) $(BPF_CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -c -o $@ $<
endef

$(BPF_BUILD)/%.bpf.o: bpf/%.bpf.c $(BPF_BUILD)/bpf-flags
	$(compile_bpf)

$(BPF_BUILD)/%.skel.h: $(BPF_BUILD)/%.bpf.o
	$(call step,GEN,$@) $(BPFTOOL) gen skeleton $< name $*_bpf >$@

# Skeletons must be there before what includes them is compiled for the first time; later the dependency files know.
includes_skeleton = $(shell grep -rlE --include='*.c' '^\#include ".*\.skel\.h"' $(1))
$(call objects,$(call includes_skeleton,user tests/bpf tests/lib tests/vm)): | $(SKELETONS)

# Man pages and units of systemd, made below. Making a page runs the program, so a build for another machine installs those of a build
# for this one: MAN_BUILD=DIRECTORY.
MAN_BUILD ?= $(BUILD)
MAN_PAGES := weir.8 weir-rules.5 weir-replay.1
MAN := $(addprefix $(MAN_BUILD)/man/,$(MAN_PAGES))
UNITS := $(addprefix $(BUILD)/systemd/,weir.service weir@.service)

# ---- the tests ----

# The oracle, with its packets and random rule sets, knows as little of the kernel as core. The rest of tests/lib loads the program.
oracle_SRC := $(wildcard tests/lib/model*.c tests/lib/random*.c) tests/lib/packets.c tests/lib/alu.c
test_SRC := $(filter-out $(oracle_SRC),$(call sources,tests/lib))
ORACLE := $(BUILD)/libweir-oracle.a
TEST_LIB := $(BUILD)/libweir-test.a

$(ORACLE): $(call objects,$(oracle_SRC))
$(TEST_LIB): $(call objects,$(test_SRC))

tests_in = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/$(1)))
UNIT_TESTS := $(call tests_in,unit/*_test.c)
BPF_TESTS := $(call tests_in,bpf/*_test.c)
TOOLS := $(call tests_in,tools/*.c)

# Unit tests link all of core and of the oracle, and no libbpf: if either began to use the kernel, no unit test would link.
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(ORACLE) $(CORE)
	$(call step,LD,$@) $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,--whole-archive $(filter %.a,$^) -Wl,--no-whole-archive $(CORE_LIBS) $(CMOCKA) $(LDLIBS)

# What the unit tests of one subject share.
$(call tests_in,unit/compile_*_test.c): $(call objects,tests/unit/compile_by_hand.c tests/unit/compile_oracle.c)
$(call tests_in,unit/ruleset_*_test.c): $(call objects,tests/unit/ruleset_bench.c)
$(call tests_in,unit/model_breaker_*test.c): $(call objects,tests/unit/model_breaker_bench.c)

# The store's script is run by a Lua of the age of Redis's.
$(BUILD)/tests/unit/cluster_simulation_test: $(call objects,tests/unit/cluster_world.c)
$(BUILD)/tests/unit/cluster_simulation_test: LDLIBS := -llua5.1 -lm

# Of the bench only what needs no kernel.
BENCH_PURE := compare page picture report trace traffic trial_figures
$(BUILD)/tests/unit/bench_test: $(call objects,$(BENCH_PURE:%=tests/bench/%.c))
$(BUILD)/tests/unit/bench_test: LDLIBS := -ljansson

$(BUILD)/tests/bpf/fair_shapes_test: LIBS += -lm

# Everything else loads the program. With cmocka throughout, because tests/lib asserts by it.
LINK_TEST = $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS) $(CMOCKA) -lpthread

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(TEST_LIB) $(ORACLE) $(WEIR) $(CORE)
	$(call step,LD,$@) $(LINK_TEST)

# Verifiers refuse, now and then, what one compiler makes of a source and take what another does. So the tests that ask
# them run with the objects of the other compiler, too; all but what holds a skeleton is shared.
OTHER_BUILD := $(BUILD)/$(OTHER_CLANG)
OTHER_SKELETONS := $(SKELETONS:$(BPF_BUILD)/%=$(OTHER_BUILD)/%)
OTHER_OBJECTS := $(patsubst %.c,$(OTHER_BUILD)/%.o,$(call includes_skeleton,user))
OTHER_LOAD := $(OTHER_BUILD)/tests/vm/load-$(OTHER_CLANG)
COUNTS := $(BUILD)/tests/vm/counts
OTHER_COUNTS := $(OTHER_BUILD)/tests/vm/counts-$(OTHER_CLANG)
OTHER_TESTS := $(OTHER_LOAD) $(OTHER_COUNTS) $(OTHER_BUILD)/tests/bpf/stack_test-$(OTHER_CLANG)

$(OTHER_BUILD)/%.bpf.o: BPF_CLANG := $(OTHER_CLANG)
$(OTHER_BUILD)/%.bpf.o: bpf/%.bpf.c $(BPF_BUILD)/bpf-flags
	$(compile_bpf)

$(OTHER_BUILD)/%.skel.h: $(OTHER_BUILD)/%.bpf.o
	$(call step,GEN,$@) $(BPFTOOL) gen skeleton $< name $*_bpf >$@

$(OTHER_BUILD)/%.o: %.c $(BUILD)/flags | $(OTHER_SKELETONS)
	@mkdir -p $(@D)
	$(call step,CC,$< ($(OTHER_CLANG))) $(CC) -I$(OTHER_BUILD) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The other compiler's objects come first, so that the linker does not look for the same in the library.
$(OTHER_BUILD)/tests/%-$(OTHER_CLANG): $(OTHER_BUILD)/tests/%.o $(OTHER_OBJECTS) $(TEST_LIB) $(ORACLE) $(WEIR) $(CORE)
	$(call step,LD,$@) $(LINK_TEST)

# Where it cannot be had, tests/bpf/clang_19_test says so.
HAS_OTHER := $(shell command -v $(OTHER_CLANG))
OTHER_TESTS_HERE := $(if $(HAS_OTHER),$(OTHER_TESTS))

tests: $(BUILD)/weir $(MAN) $(UNITS) $(UNIT_TESTS) $(BPF_TESTS) $(COUNTS) $(TOOLS)

deep-tests: tests $(OTHER_TESTS_HERE)

# The newcomer's two commands install what they need first; everything else expects it to be there. They build on all CPUs,
# unless -j says otherwise.
parallel = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))
# What is in which size is said by tests/programs.
test: deps
	+@$(MAKE) $(parallel) --no-print-directory tests
	BUILD=$(BUILD) exec tests/run test

# What CI runs after it.
test-deep: deps
	+@$(MAKE) $(parallel) --no-print-directory deep-tests
	$(make_fuzzers)
	BUILD=$(BUILD) exec tests/run deep

test-quick: tests
	BUILD=$(BUILD) exec tests/run quick

test-all: deps
	+@$(MAKE) $(parallel) --no-print-directory deep-tests $(VM_PROGRAMS)
	$(make_fuzzers)
	BUILD=$(BUILD) exec tests/run all

test-unit: $(UNIT_TESTS)
	BUILD=$(BUILD) exec tests/run 'unit/*'

test-bpf: $(BPF_TESTS) $(OTHER_TESTS_HERE)
	BUILD=$(BUILD) exec tests/run 'bpf/*'

# Fuzz targets are made by clang, whose libFuzzer drives them, with sanitizers, in a build of their own.
FUZZ_BUILD := $(BUILD)-fuzz
FUZZERS := $(call tests_in,fuzz/*_fuzz.c)
make_fuzzers = +@$(MAKE) $(parallel) --no-print-directory BUILD=$(FUZZ_BUILD) BPF_BUILD=$(BUILD) CC=clang CFLAGS='-O1 -g' \
	SANITIZE_FLAGS='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer' fuzzers

fuzz:
	$(make_fuzzers)
	BUILD=$(BUILD) FUZZ_SECONDS='$(FUZZ_SECONDS)' FUZZ_ONLY='$(FUZZ_ONLY)' tests/fuzz/run

fuzzers: $(FUZZERS)

$(FUZZERS): $(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/fuzz.o \
		$(ORACLE) $(WEIR) $(CORE)
	$(call step,LD,$@) $(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# `make test-deep` has all but the largest configurations.
model:
	tests/model/run all

test-e2e: $(BUILD)/weir $(MAN) $(UNITS) $(TOOLS)
	BUILD=$(BUILD) exec tests/run 'e2e/*'

# Not part of `test`: WEIR_FAULTS says how many system calls of each command fail, WEIR_SOAK_MINUTES how long it takes.
faults: $(BUILD)/weir $(TOOLS)
	BUILD=$(BUILD) tests/faults

soak: $(BUILD)/weir $(TOOLS)
	BUILD=$(BUILD) tests/soak

# Not part of `test`: whether the tests notice faults, and what they never reach.
mutants:
	BUILD=$(BUILD) MUTANTS='$(MUTANTS)' tests/mutants/run

# Without what keeps processes that stay from writing files, as what they counted.
COVERAGE_BUILD := $(BUILD)/coverage
coverage:
	+@$(MAKE) --no-print-directory BUILD=$(COVERAGE_BUILD) BPF_BUILD=$(BUILD) WITHOUT=confine CFLAGS='-O0 -g' \
		SANITIZE_FLAGS='--coverage -fprofile-update=atomic -Wno-format-nonliteral -Wno-format-truncation' tests
	BUILD=$(COVERAGE_BUILD) tests/coverage $(SUITES)

# Not part of `test`, but for a minute of it (tests/e2e/pace_vm_test): emulated machines are slow.
REPLAY_TESTS := $(call tests_in,bpf/replay*_test.c)
VM_TESTS := tests/vm/commands tests/vm/devices tests/vm/other_programs $(BUILD)/tests/vm/load $(BUILD)/tests/vm/hotplug $(REPLAY_TESTS) $(if $(HAS_OTHER),$(OTHER_LOAD))
VM_PROGRAMS := $(call tests_in,vm/*.c)
test-vm: $(BUILD)/weir $(TOOLS) $(VM_TESTS) $(VM_PROGRAMS)
	BUILD=$(BUILD) tests/vm/run $(VM_TESTS)
	BUILD=$(BUILD) tests/vm/run --steady tests/vm/pace tests/vm/tc_limits
	BUILD=$(BUILD) tests/vm/run --stutter $(BUILD)/tests/vm/late_ticks
	BUILD=$(BUILD) RELEASES=bookworm tests/vm/run --cpus 16 $(BUILD)/tests/vm/many_cpus
	BUILD=$(BUILD) RELEASES=bookworm tests/vm/run --steady --cpus 16 $(BUILD)/tests/vm/cost tests/vm/memory

# What packets and the verifier cost, in counts that no machine changes (tests/budgets): compared, or written.
BUDGETS_NEED := $(BUILD)/weir $(TOOLS) $(COUNTS) $(if $(HAS_OTHER),$(OTHER_COUNTS))
check-budgets: $(BUDGETS_NEED)
	BUILD=$(BUILD) BPF_CLANG='$(BPF_CLANG)' tests/vm/budgets_test $(BUDGETS_FLAGS)

budgets: $(BUDGETS_NEED)
	BUILD=$(BUILD) BPF_CLANG='$(BPF_CLANG)' tests/vm/budgets_test --write $(BUDGETS_FLAGS)

# The object on every kernel that Debian has now, the newest backport included: it loads, decides alike, and is far enough
# from the verifier's limit. Part of test-vm, but for the newest.
KERNELS ?= bookworm trixie trixie-backports
KERNEL_TESTS := $(BUILD)/tests/vm/load $(if $(HAS_OTHER),$(OTHER_LOAD))
test-kernels: $(BUILD)/weir $(TOOLS) $(KERNEL_TESTS)
	BUILD=$(BUILD) MACHINE=kernels RELEASES='$(KERNELS)' tests/vm/run $(KERNEL_TESTS)

# Debian's kernel for arm64: the only machine of another kind that it is tried on.
test-arm64:
	BUILD=$(BUILD) tests/vm/arm64

# A whole system, with systemd: the package and the service.
test-debian: deb $(BUILD)/weir $(TOOLS)
	BUILD=$(BUILD) tests/vm/debian

# In a build of its own, which takes half the time: what is shown is the program in the kernel, and that is the same.
DEMO_BUILD := $(BUILD)/demo
demo:
	@tests/deps demo
	+@$(MAKE) --no-print-directory BUILD=$(DEMO_BUILD) BPF_BUILD=$(BUILD) CFLAGS=-O0 $(addprefix $(DEMO_BUILD)/,weir tests/tools/blast tests/tools/sink tests/tools/stalls)
	BUILD=$(DEMO_BUILD) tests/e2e/demo

demo-cluster:
	@tests/deps demo
	+@$(MAKE) --no-print-directory $(BUILD)/weir $(TOOLS)
	BUILD=$(BUILD) tests/e2e/demo_cluster

# ---- the bench ----

BENCH_SRC := $(call sources,tests/bench)
BENCH_SKELETONS := $(patsubst %.bpf.c,$(BUILD)/%.skel.h,$(wildcard tests/bench/*.bpf.c))

# It has BPF objects of its own: what drives the shipped one, and what it is compared with.
$(BUILD)/tests/bench/%.bpf.o: tests/bench/%.bpf.c $(BPF_BUILD)/bpf-flags
	$(compile_bpf)

$(BUILD)/tests/bench/%.skel.h: $(BUILD)/tests/bench/%.bpf.o
	$(call step,GEN,$@) $(BPFTOOL) gen skeleton $< name bench_$* >$@

$(call objects,$(call includes_skeleton,tests/bench)): | $(BENCH_SKELETONS)

$(BUILD)/tests/bench/bench: $(call objects,$(BENCH_SRC)) $(ORACLE) $(WEIR) $(CORE)
	$(call step,LD,$@) $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lpthread

SHORTCUTS_SECTION := What each shortcut is worth
COMPARE_SECTION := Against the last release

# Nobody else should use the machine meanwhile. Says at the end what was missed, which is no failure of the bench.
bench:
	@tests/deps bench
	+@$(MAKE) --no-print-directory $(BUILD)/weir $(BUILD)/tests/bench/bench
	$(BUILD)/tests/bench/bench --page docs/bench.md --json docs/bench.json $(BENCH_FLAGS) || [ $$? -eq 3 ]

bench-quick: $(BUILD)/tests/bench/bench
	$(BUILD)/tests/bench/bench --quick $(BENCH_FLAGS)

# Exit 3 of the bench: a row is worse. Then, too, the table is put where it belongs.
bench-compare:
	@tests/deps bench
	+@$(MAKE) --no-print-directory $(BUILD)/weir $(BUILD)/tests/bench/bench
	old=$$(BUILD=$(BUILD) tests/bench/build_base $(BASE)) && new=$$(git describe --tags --always --dirty) && status=0 && \
		{ tests/apart $(BUILD)/tests/bench/bench --only u --old "$$old" --new "$$new:$(BUILD)/weir" \
			--page $(BUILD)/compare.md || status=$$?; } && \
		$(if $(RECORD),{ [ $$status -ne 0 -a $$status -ne 3 ] || \
			tests/bench/put_section '$(COMPARE_SECTION)' $(BUILD)/compare.md docs/internals/bench-changes.md; } &&) exit $$status

bench-shortcuts:
	@tests/deps bench
	+@$(MAKE) --no-print-directory $(BUILD)/tests/bench/bench
	$(BUILD)/tests/bench/bench --only x --page $(BUILD)/shortcuts.md $(BENCH_FLAGS)
	tests/bench/put_section '$(SHORTCUTS_SECTION)' $(BUILD)/shortcuts.md docs/internals/bench-changes.md

# ---- the checks ----

# `make test` runs the quick ones, too, as tests/check/run: one line for each in the sum.
check-changed:
	+@$(MAKE) --no-print-directory check SINCE='$(shell tests/last_release)'

check: check-format check-columns check-words check-links check-subjects check-arrows check-promises check-symbols check-weight check-shell check-cppcheck check-analyzer check-tidy

C_SRC := $(call sources,user tests docs)
# SINCE=REV: clang-format, cppcheck, gcc -fanalyzer and clang-tidy look at those alone that have changed since then.
SINCE ?=
since = $(if $(SINCE),$(filter $(shell git diff --name-only $(SINCE)),$(1)),$(1))
CHECKED_SRC = $(call since,$(C_SRC))
FORMATTED := $(sort $(shell find bpf include user tests docs -name '*.[ch]'))
SCRIPTS = $(sort $(shell find .ci contrib tests -type f -exec awk 'FNR == 1 && /^\#!.*sh$$/ { print FILENAME } { nextfile }' {} +) \
	$(shell find tests -name '*.sh') contrib/completion/weir.bash)

format:
	clang-format -i $(FORMATTED)

check-format:
	$(call step,FORMAT,bpf include user tests) test -z '$(firstword $(call since,$(FORMATTED)))' || clang-format --dry-run -Werror $(call since,$(FORMATTED))

# clang-format does not break comments.
check-columns:
	$(call step,COLUMNS,bpf include user tests) tests/check/columns 120 $(FORMATTED)

# Prose that is held to plain English: pages, sources, and what scripts and lists of tests say.
PAGES = $(wildcard docs/*.md docs/internals/*.md)
LISTS = Makefile tests/README.md tests/programs tests/budgets tests/houses $(filter-out tests/check/words,$(SCRIPTS))
PROSE = $(PAGES) README.md docs/man/commands.c $(wildcard docs/man/*.in include/*.def) $(filter-out docs/%,$(FORMATTED)) $(LISTS)
check-words:
	$(call step,WORDS,bpf include user tests docs) tests/check/words $(FORMATTED) $(LISTS) include/*.def $(filter-out docs/bench% docs/internals/bench%,$(PAGES)) README.md -- $(PROSE)

check-subjects:
	$(call step,SUBJECTS,commits since the last release) tests/check/subjects

check-links:
	$(call step,LINKS,README.md CONTRIBUTING.md docs) tests/check/links README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md tests/README.md $(PAGES)

check-arrows:
	$(call step,ARROWS,include bpf user) tests/arrows

# Each promise and command has a test in `make test`.
check-promises:
	$(call step,PROMISES,tests/promises) tests/check/promises tests/promises

# Not bench*.md, which are of the day they were measured.
check-symbols:
	$(call step,SYMBOLS,bpf include user tests docs) tests/check/symbols $(FORMATTED) include/*.def README.md CONTRIBUTING.md tests/README.md $(filter-out docs/bench% docs/internals/bench%,$(PAGES))

# How much there is to read does not grow unnoticed: tests/weight.
check-weight:
	$(call step,WEIGHT,tests/weight) tests/check/weight

check-shell:
	$(call step,SHELL,.ci contrib tests) shellcheck $(SCRIPTS)

# Which macros it must know, and what it gets wrong, is in tests/check. Skeletons it must not find: it reads their
# bytes one by one, for minutes.
check-cppcheck:
	$(call step,CPPCHECK,user tests) test -z '$(firstword $(CHECKED_SRC))' || cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,performance,portability \
		--inline-suppr --suppressions-list=tests/check/cppcheck.suppressions --library=tests/check/cppcheck.cfg \
		$(filter-out -I$(BUILD) -I$(BPF_BUILD),$(CPPFLAGS)) $(CHECKED_SRC)

# One file at a time, and only files that have changed since, or include one that has. A cmocka.h comes first that says
# which assertions do not return.
checked = $(patsubst %.c,$(BUILD)/check/$(1)/%.ok,$(CHECKED_SRC))
check-analyzer: $(call checked,analyzer)
check-tidy: $(call checked,tidy)
$(call checked,analyzer) $(call checked,tidy): | $(SKELETONS) $(BENCH_SKELETONS) $(BUILD)/commit.h

# gcc's alone: clang has none. Without optimisation, as what is inlined confuses it. gcc 12 loses sight of memory whose
# pointer is put into a struct, and calls that a leak; the leak checker of SANITIZE=1 finds true ones. The warnings of
# formats are for a build that optimises.
ANALYZER_QUIET := -Wno-analyzer-malloc-leak -Wno-format-nonliteral -Wno-format-truncation
$(call checked,analyzer): $(BUILD)/check/analyzer/%.ok: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call step,ANALYZE,$<) gcc $(CPPFLAGS) $(ALL_CFLAGS) -O0 -U_FORTIFY_SOURCE -fanalyzer $(ANALYZER_QUIET) \
		-Itests/check/include -MMD -MP -MT $@ -MF $(@:.ok=.d) -S -o /dev/null $<
	@touch $@

# What it says on stderr is how many warnings of other headers it left out.
$(call checked,tidy): $(BUILD)/check/tidy/%.ok: %.c .clang-tidy tests/.clang-tidy $(BUILD)/flags
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) -MM -MP -MT $@ -MF $(@:.ok=.d) $<
	$(call step,TIDY,$<) clang-tidy --quiet $< -- -Itests/check/include $(CPPFLAGS) $(CFLAGS) -std=gnu11 \
		2>$(@:.ok=.words) || { cat $(@:.ok=.words); false; }
	@touch $@

# ---- the rest ----

deps:
	@tests/deps

# Man pages: pages of docs/, and what a program prints from the tables of options, commands and fields of rule files.
MAN_DATE = $(shell date -u $(if $(SOURCE_DATE_EPOCH),-d @$(SOURCE_DATE_EPOCH),-r CHANGELOG.md) +%F)
MAN_COMMANDS := $(BUILD)/docs/man/commands

man: $(MAN)

units: $(UNITS)

$(MAN_COMMANDS): $(MAN_COMMANDS).o $(WEIR) $(CORE)
	$(call step,LD,$@) $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/man/commands.body: $(MAN_COMMANDS)
	@mkdir -p $(@D)
	$(call step,GEN,$@) $< >$@

$(BUILD)/man/replay-command.body: $(MAN_COMMANDS)
	@mkdir -p $(@D)
	$(call step,GEN,$@) $< replay >$@

$(BUILD)/man/fields.body: $(MAN_COMMANDS)
	@mkdir -p $(@D)
	$(call step,GEN,$@) $< fields >$@

$(BUILD)/man/%.body: docs/%.md docs/man/markdown.awk
	@mkdir -p $(@D)
	$(call step,GEN,$@) awk -v SKIP=$(if $(filter rules,$*),0,1) -f docs/man/markdown.awk $< >$@

# What is installed elsewhere says so.
$(BUILD)/paths: FORCE
	$(call write_if_changed,$(SBINDIR) $(DOCDIR) $(SYSCONFDIR))

# A line @NAME.body@ of a template stands for that text.
$(BUILD)/man/weir.8: $(BUILD)/man/commands.body
# The pages of rule files, of which the first has an introduction.
RULE_PAGES := rules matching directions windows strategies limits lists mistakes
$(BUILD)/man/weir-rules.5: $(RULE_PAGES:%=$(BUILD)/man/%.body) $(BUILD)/man/fields.body
$(BUILD)/man/weir-replay.1: $(BUILD)/man/replay-command.body $(BUILD)/man/replay.body
$(addprefix $(BUILD)/man/,$(MAN_PAGES)): $(BUILD)/man/%: docs/man/%.in CHANGELOG.md $(BUILD)/paths
	$(call step,GEN,$@) sed $(foreach body,$(filter %.body,$^),-e '/^@$(notdir $(body))@$$/{r $(body)' -e 'd;}') \
		-e 's|@VERSION@|$(VERSION)|; s|@DATE@|$(MAN_DATE)|; s|@DOCDIR@|$(DOCDIR)|' $< >$@

# Units of systemd: the service, and one for each further instance.
make_unit = $(call step,GEN,$@) sed -e 's|@OF@|$(1)|; s|@NAME@|$(2)|g; s|@FILE@|$(3)|; s|@DEFAULT@|$(4)|g' \
	-e 's|@SBINDIR@|$(SBINDIR)|; s|@SYSCONFDIR@|$(SYSCONFDIR)|g' $< >$@

$(BUILD)/systemd/weir.service: contrib/systemd/weir.service.in $(BUILD)/paths
	@mkdir -p $(@D)
	$(call make_unit,,main,weir,weir)

$(BUILD)/systemd/weir@.service: contrib/systemd/weir.service.in $(BUILD)/paths
	@mkdir -p $(@D)
	$(call make_unit, of instance %i,%i,%i,weir-%i)

# Where the last good rule sets are, and what services keep (user/lib/kernel/instance/last_good.c).
STATEDIR = /var/lib/weir

# Each file that is installed: what it is here, its mode, and where it goes. Both targets go by this one list.
INSTALLED = \
	$(BUILD)/weir:0755:$(SBINDIR)/weir \
	$(foreach page,$(MAN),$(page):0644:$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(notdir $(page))) \
	$(foreach page,README.md CHANGELOG.md LICENSE,$(page):0644:$(DOCDIR)/$(page)) \
	$(foreach page,$(wildcard docs/*.md docs/*.svg docs/*.png),$(page):0644:$(DOCDIR)/$(page)) \
	$(foreach file,$(wildcard rules/*),$(file):0644:$(DOCDIR)/$(file)) \
	$(foreach file,$(wildcard contrib/grafana/* contrib/prometheus/*),$(file):0644:$(DOCDIR)/$(notdir $(file))) \
	$(foreach file,$(wildcard contrib/fail2ban/* contrib/crowdsec/*),$(file):0644:$(DOCDIR)/$(file)) \
	$(foreach unit,$(UNITS),$(unit):0644:$(UNITDIR)/$(notdir $(unit))) \
	contrib/completion/weir.bash:0644:$(BASHDIR)/weir \
	contrib/completion/_weir:0644:$(ZSHDIR)/_weir

# The administrator's own: what is there already stays, and what was changed is not taken away.
CONFIGURED = contrib/systemd/weir.yaml:0644:$(SYSCONFDIR)/weir/weir.yaml \
	contrib/systemd/weir.default:0644:$(SYSCONFDIR)/default/weir

part = $(word $(1),$(subst :, ,$(2)))

install_file = install -D -m $(call part,2,$(1)) $(call part,1,$(1)) $(DESTDIR)$(call part,3,$(1))

install: $(BUILD)/weir $(MAN) $(UNITS)
	@$(foreach file,$(INSTALLED),$(call install_file,$(file)) &&) true
	@$(foreach file,$(CONFIGURED),{ [ -e $(DESTDIR)$(call part,3,$(file)) ] || $(call install_file,$(file)); } &&) true
	@install -d -m 700 $(DESTDIR)$(STATEDIR)
	@echo 'installed weir $(VERSION) in $(DESTDIR)$(PREFIX)'

# Where instances are pinned. A weir that is gone takes nothing off.
PINS ?= /sys/fs/bpf/weir

# Directories of weir's own go as well, once they are empty.
uninstall:
	@[ -n '$(DESTDIR)' ] || for pins in $(PINS)/*/; do \
		name=$${pins%/} && name=$${name##*/}; \
		[ ! -d "$$pins" ] || echo "still attached, and limits: '$(BUILD)/weir detach --instance $$name' takes it off"; \
	done
	@rm -f $(foreach file,$(INSTALLED),$(DESTDIR)$(call part,3,$(file)))
	@$(foreach file,$(CONFIGURED),[ ! -e $(DESTDIR)$(call part,3,$(file)) ] || \
		{ cmp -s $(call part,1,$(file)) $(DESTDIR)$(call part,3,$(file)) && rm $(DESTDIR)$(call part,3,$(file)); } || \
		echo 'left, as it was changed: $(DESTDIR)$(call part,3,$(file))';) true
	@rmdir $(addprefix $(DESTDIR)$(DOCDIR),/docs /rules /contrib/fail2ban /contrib/crowdsec /contrib /) $(DESTDIR)$(SYSCONFDIR)/weir \
		2>/dev/null || true

# The source that is here, in a directory of its own, and Debian's tools. What comes of it is in $(BUILD)/deb.
DEB_TREE := $(BUILD)/deb/weir-$(VERSION)
deb:
	@tests/deps deb
	rm -rf $(BUILD)/deb && mkdir -p $(DEB_TREE)
	{ git --git-dir=.git ls-files -z 2>/dev/null | grep -z . || \
		find . -path './build*' -prune -o -path ./.git -prune -o -type f -print0; } | \
		tar -c --null --verbatim-files-from -T - | tar -x -C $(DEB_TREE)
	echo '$(COMMIT)' >$(DEB_TREE)/.commit
	cd $(DEB_TREE) && env -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage -b -us -uc >../build.log 2>&1 || \
		{ tail -n 30 ../build.log; false; }
	@ls $(BUILD)/deb/*.deb

# Whatever this tree holds: what is released is what the tag or the commit has.
REV ?=
SIGN_KEY ?=
release:
	@tests/deps release
	BUILD=$(BUILD) SIGN_KEY='$(SIGN_KEY)' contrib/release/make_release '$(REV)'

# What a release must be, tried: the same bytes from two directories, signatures, arm64, an RPM, an image (root; half an hour).
test-release:
	@tests/deps release
	BUILD=$(BUILD) tests/release

# The picture of docs/strategies.md: a minute of connections replayed against the sample rule (root).
.PHONY: docs/warm-up.svg
docs/warm-up.svg: $(BUILD)/weir $(BUILD)/tests/tools/steady_capture
	$(BUILD)/tests/tools/steady_capture $(BUILD)/warm-up.pcap syn 80 1500 32 syn 80 0 12 syn 80 1500 24
	$(BUILD)/weir replay --plot $@ -r rules/warm-up-web.yaml $(BUILD)/warm-up.pcap

# One entry a file, in the form that clangd and other tools read (JSON Compilation Database).
BPF_SRC := $(wildcard bpf/*.bpf.c tests/bench/*.bpf.c)
compile_commands.json: $(SKELETONS) $(BENCH_SKELETONS) $(BUILD)/commit.h
	$(call step,GEN,$@) { \
		for file in $(C_SRC); do echo "$$file $(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $$file"; done; \
		for file in $(BPF_SRC); do echo "$$file $(BPF_CLANG) $(BPF_CFLAGS) -c $$file"; done; \
	} | awk -v dir='$(CURDIR)' 'BEGIN { printf "[" } \
		{ file = $$1; $$1 = ""; printf "%s\n{\"directory\": \"%s\", \"file\": \"%s\", \"command\": \"%s\"}", \
			(NR > 1 ? "," : ""), dir, file, substr($$0, 2) } END { print "\n]" }' >$@

clean:
	rm -rf build build-sanitize build-fuzz compile_commands.json

# Not those of whole systems in there, nor of other builds.
OTHER_TREES := $(addprefix -o -path $(BUILD)/,deb mutants coverage demo)
-include $(wildcard $(BPF_BUILD)/*.bpf.d) $(shell find $(BUILD) \( -path $(BUILD)/vm $(OTHER_TREES) \) -prune -o -type f -name '*.d' -print 2>/dev/null)
