# gtrain. `make list` prints the targets; README.md has everything else.
# Variables: BUILD (output directory), CC, CFLAGS, CCACHE, prefix, DESTDIR, CUDA (toolkit directory; empty: build without), GLOO
# (the same), HARDEN (empty: without protection of stack, buffers and relocations), V=1 (show every command).

.DEFAULT_GOAL := all
BUILD   ?= build
prefix  ?= /usr/local
CC      ?= gcc
CFLAGS  ?= -O2 -g
# ccache, if it is installed and can write its directory, compiles only what differs from all earlier builds. Empty: without it.
ifeq ($(origin CCACHE),undefined)
CCACHE  := $(shell command -v ccache >/dev/null && mkdir -p "$$(ccache -k temporary_dir)" 2>/dev/null && echo ccache)
endif
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wno-missing-field-initializers
INC     := -Iengine -Ikernels -Idatasets
# -ffp-contract=off: the compiler adds no fused multiply-adds; otherwise results would depend on the instruction set of the clone that runs.
ALLFLAGS = -std=gnu17 $(WARN) -fPIC -fvisibility=protected -ffp-contract=off -fno-math-errno -pthread -D_GNU_SOURCE \
           $(INC) $(HARDEN) $(CFLAGS) $(XFLAGS)

# Protection of stacks and of buffers. Buffers are protected only if the compiler optimises, because it needs their sizes, and unless a
# sanitizer or CFLAGS sets _FORTIFY_SOURCE. The tables of relocations are read-only after the program has been loaded.
OPTIMIZED := $(filter-out -O0,$(lastword $(filter -O%,$(CFLAGS))))
HARDEN    ?= -fstack-protector-strong \
             $(if $(OPTIMIZED),$(if $(findstring _FORTIFY_SOURCE,$(CFLAGS))$(findstring -fsanitize,$(CFLAGS)),, \
             -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
ifneq ($(strip $(HARDEN)),)
HARDEN_LD := -Wl,-z,relro -Wl,-z,now
endif
# If the linker can, relative relocations are a bitmap, which is a tenth as large: the program has 4,000 of them for its pointer tables.
RELR_LD   := $(shell $(CC) -Wl,--help 2>/dev/null | grep -q pack-relative-relocs && echo -Wl,-z,pack-relative-relocs)
# A plugin exports only what the program looks for.
PLUGIN_LD := -shared -Wl,--version-script=scripts/plugin.map $(RELR_LD)

# make splits names at spaces, so BUILD must not contain one. The path of the sources may, because their names are relative.
ifneq ($(words $(BUILD)),1)
$(error BUILD="$(BUILD)": the output folder must be one name without a space)
endif

ifneq ($(V),1)
Q    := @
said = @printf '%-5s %s\n' $(1) $(2);
endif

# ---- what is compiled: every .c of a room ------------------------------------------------------------------------------------
BASE_SRC   := $(wildcard engine/base/*.c kernels/*.c)
ENGINE_SRC := $(wildcard engine/ir/*.c engine/conf/*.c engine/plan/*.c engine/store/*.c engine/launch/*.c engine/exec/*.c \
              engine/against/*.c engine/team/*.c engine/session/*.c engine/score/*.c engine/train/*.c engine/report/*.c \
              engine/use/*.c engine/setup/*.c engine/view/*.c engine/export/*.c engine/track/*.c engine/sweep/*.c engine/page/*.c)
DATA_SRC   := $(wildcard datasets/*.c datasets/image/*.c datasets/table/*.c datasets/text/*.c)
# Commands that are plugins, with the code that only they need. Its functions are the plugin's, all others the program's.
cost_SRC   := $(wildcard cli/cost_*.c engine/report/cost_*.c)
export_SRC := cli/cmd_export.c $(wildcard engine/export/*.c)
help_SRC   := $(patsubst %,cli/%.c,cmd_completion cmd_help complete_words editor_files help_topics json_schema)
init_SRC   := cli/cmd_init.c $(wildcard engine/setup/init_*.c)
show_SRC   := cli/cmd_show.c $(wildcard cli/show_*.c engine/report/show_*.c) engine/report/pixel_font.c
smoke_SRC  := cli/smoke_view.c cli/against_view.c $(wildcard engine/report/smoke*.c)
use_SRC    := $(patsubst %,cli/cmd_%.c,eval inspect predict) $(filter-out %/evaluate.c %/inference.c %/inspect.c %/sample_table.c, \
              $(wildcard engine/use/*.c))
view_SRC   := $(patsubst %,cli/cmd_%.c,bench compare lr_find plot report runs sweep) $(wildcard cli/compare_*.c cli/plot_*.c) \
              cli/run_results.c $(patsubst %,engine/report/%.c,bench_world comm_echo) \
              $(wildcard engine/view/*.c engine/page/*.c engine/sweep/*.c engine/setup/lr_*.c)
COMMANDS   := cost export help init show smoke use view
CLI_SRC    := $(filter-out $(foreach p,$(COMMANDS),$($p_SRC)),$(wildcard cli/*.c))
NULL_SRC   := $(wildcard kernels/null/*.c)
CPU_SRC    := $(wildcard kernels/cpu/*.c)
FETCH_SRC  := $(wildcard datasets/fetch/*.c)
DRAW_SRC   := $(wildcard engine/view/draw/*.c)
PACKED_SRC := $(wildcard datasets/archive/*.c)
MLFLOW_SRC := $(wildcard engine/track/mlflow/*.c)
REF_SRC    := $(wildcard tests/ops/ref/*.c)
TEST_SRC   := $(wildcard tests/*/test_*.c)
TEST_SH    := $(wildcard tests/*/test_*.sh)
TEST_LIB   := $(wildcard tests/*.c tests/ops/harness*.c)
# check-quick: configs, graphs, plans, every operation against PyTorch, optimizers, checkpoints, a resumed run, the command line, ranks.
QUICK_SRC  := $(filter-out %/test_dataset_bad.c %/test_fetch.c %/test_dnn_cache.c,$(wildcard tests/unit/test_*.c)) tests/ops/test_ops.c \
              tests/ops/test_updates.c tests/ops/test_cpu_dnn.c tests/ops/test_gemm_small.c tests/ops/test_fuse.c tests/ops/test_muon.c \
              tests/crash/test_corrupt.c tests/crash/test_diskfull.c tests/par/test_grid.c tests/par/test_verify_comm.c tests/par/test_dp.c
QUICK_SH   := tests/resume/test_resume_exact.sh tests/cli/test_cli_help.sh tests/cli/test_cli_usage.sh tests/cli/test_cli_readme.sh \
              tests/cli/test_cli_signals.sh tests/cli/test_plan.sh tests/cli/test_check_world.sh

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIB_OBJ  := $(call obj,$(BASE_SRC) $(ENGINE_SRC) $(DATA_SRC))
BASE_LIB := $(BUILD)/libbase.a
PLUGINS  := $(BUILD)/lib/gtrain/null.so $(BUILD)/lib/gtrain/cpu.so
ifneq ($(FETCH_SRC),)
PLUGINS  += $(BUILD)/lib/gtrain/fetch.so
endif
PLUGINS  += $(BUILD)/lib/gtrain/archive.so
ifneq ($(DRAW_SRC),)
PLUGINS  += $(BUILD)/lib/gtrain/draw.so
endif
PLUGINS  += $(BUILD)/lib/gtrain/mlflow.so
PLUGINS  += $(COMMANDS:%=$(BUILD)/lib/gtrain/%.so)
TESTS    := $(patsubst tests/%.c,$(BUILD)/tests/%,$(TEST_SRC))
QUICK    := $(patsubst tests/%.c,$(BUILD)/tests/%,$(QUICK_SRC)) $(QUICK_SH)
REF      := $(BUILD)/lib/gtrain/ref.so
TOOLS    := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/*/tool_*.c))
LIBS     := -lconfig -lxxhash -ldeflate -lz -lpng -ljpeg -lwebp -lutf8proc -lm -ldl -pthread

-include kernels/cuda/cuda.mk
-include tests/cudasim/cudasim.mk
-include kernels/gloo/gloo.mk

COMPLETIONS := $(addprefix $(BUILD)/completions/,gtrain.bash _gtrain gtrain.fish gtrain.vim gtrain.vscode gtrain.json-schema)

## all: the program, every backend that this machine can build, and the completion scripts
.PHONY: all
all: $(BUILD)/bin/gtrain $(PLUGINS) $(COMPLETIONS)

$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call said,CC,$@)
	$(Q)$(CCACHE) $(CC) $(ALLFLAGS) -MMD -MP -c $< -o $@

# The loops of the CPU backend. OpenMP shares its threads with oneDNN. No result depends on floating-point traps; without traps the
# compiler vectorises conditional expressions.
$(BUILD)/obj/kernels/cpu/%.o: XFLAGS += -fopenmp -O3 -fno-trapping-math
$(BUILD)/obj/kernels/comm_reduce.o: XFLAGS += -O3 -fno-trapping-math
$(BUILD)/obj/kernels/cpu/attention.o: XFLAGS += -ffp-contract=fast # its products are fused, as those of linear layers
# Otherwise gcc 12 joins the two comparisons that clamp an argument, and the vectorised loop has eight masked instructions in place of four.
$(BUILD)/obj/kernels/cpu/eltwise.o $(BUILD)/obj/kernels/cpu/rnn_isa.o: XFLAGS += -fno-thread-jumps

# The launcher waits for most of its time; small code keeps the program small.
$(BUILD)/obj/engine/launch/%.o: XFLAGS += -Os

# Loops over pixels vectorise; no result depends on floating-point traps.
$(BUILD)/obj/datasets/image/%.o: XFLAGS += -O3 -fno-trapping-math

# The version of oneDNN. Every make checks it, and writes the file if it has changed: objects for another version cannot be used.
$(BUILD)/dnnl-version: FORCE
	@mkdir -p $(@D)
	@scripts/dnnl-version.sh $@ $(CC) $(CFLAGS)
$(call obj,$(CPU_SRC)): $(BUILD)/dnnl-version
.PHONY: FORCE

# The commit for `gtrain --version`. The file is written if the commit has changed. It is empty without git, as in an unpacked archive.
$(BUILD)/commit: FORCE
	@mkdir -p $(@D)
	@scripts/commit.sh $@
$(call obj,cli/about.c cli/build_id.c): XFLAGS += -DGT_COMMIT='"$(shell cat $(BUILD)/commit)"'
$(call obj,cli/about.c cli/build_id.c): $(BUILD)/commit

# The templates of `gtrain init` as the rows {"NAME", "TEXT"} of a table in C.
TEMPLATES := $(wildcard engine/setup/templates/*.cfg)
$(BUILD)/init_templates.inc: $(TEMPLATES) Makefile
	@mkdir -p $(@D)
	$(call said,GEN,$@)
	$(Q)for t in $(TEMPLATES); do printf '{"%s",\n' "$$(basename "$$t" .cfg)"; sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' "$$t"; echo '},'; done >$@
$(BUILD)/obj/engine/setup/init_template.o: XFLAGS += -I$(BUILD)
$(BUILD)/obj/engine/setup/init_template.o: $(BUILD)/init_templates.inc

# The style sheet and the script of `gtrain report` as strings in C.
PAGE_INC := $(BUILD)/page.css.inc $(BUILD)/page.js.inc
$(PAGE_INC): $(BUILD)/%.inc: engine/page/% Makefile
	@mkdir -p $(@D)
	$(call said,GEN,$@)
	$(Q)sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $< >$@
$(BUILD)/obj/engine/page/page_assets.o: XFLAGS += -I$(BUILD)
$(BUILD)/obj/engine/page/page_assets.o: $(PAGE_INC)

# For plugins that are no commands. The linker takes only the objects that a plugin calls.
$(BASE_LIB): $(call obj,$(BASE_SRC))
$(BUILD)/libgtrain.a: $(LIB_OBJ)
$(BASE_LIB) $(BUILD)/libgtrain.a:
	@rm -f $@
	$(call said,AR,$@)
	$(Q)$(AR) rcs $@ $^

$(BUILD)/bin/gtrain: $(call obj,$(CLI_SRC)) $(BUILD)/libgtrain.a $(COMMANDS:%=$(BUILD)/obj/%.exports)
	@mkdir -p $(@D)
	$(call said,LINK,$@)
	$(Q)$(CC) $(ALLFLAGS) -pie $(filter %.o %.a,$^) -o $@ $(patsubst %,@%,$(filter %.exports,$^)) $(RELR_LD) $(HARDEN_LD) \
		$(LDFLAGS) $(LIBS)

# Commands in plugins. NAME.exports: options of the linker that link the functions of the program which the plugin calls, and export them.
define command_plugin
$(BUILD)/lib/gtrain/$(1).so: $(call obj,$($(1)_SRC) cli/build_id.c)
	@mkdir -p $$(@D)
	$$(call said,LINK,$$@)
	$$(Q)$$(CC) $$(ALLFLAGS) $$(PLUGIN_LD) $$^ -o $$@ $$(HARDEN_LD) $$(LDFLAGS) -lm

$(BUILD)/obj/$(1).exports: $(BUILD)/lib/gtrain/$(1).so
	$$(Q)nm -D -u $$< | sed -n 's/^ *U \(gt_[a-z0-9_]*\)$$$$/-Wl,-u,\1,--export-dynamic-symbol=\1/p' >$$@
endef
$(foreach p,$(COMMANDS),$(eval $(call command_plugin,$p)))

$(COMPLETIONS): $(BUILD)/bin/gtrain
	@mkdir -p $(@D)
	$(Q)$< completion $(if $(filter _gtrain,$(@F)),zsh,$(subst gtrain.,,$(@F))) >$@ || { rm -f $@; exit 1; }

$(BUILD)/lib/gtrain/null.so: $(call obj,$(NULL_SRC)) $(BASE_LIB)
	@mkdir -p $(@D)
	$(call said,LINK,$@)
	$(Q)$(CC) $(ALLFLAGS) $(PLUGIN_LD) $^ -o $@ $(HARDEN_LD) $(LDFLAGS) -lm

$(BUILD)/lib/gtrain/cpu.so: $(call obj,$(CPU_SRC)) $(BASE_LIB)
	@mkdir -p $(@D)
	$(call said,LINK,$@)
	$(Q)$(CC) $(ALLFLAGS) -fopenmp $(PLUGIN_LD) $^ -o $@ $(HARDEN_LD) $(LDFLAGS) -ldnnl -lm

# The backend of the gradient checks in f64: the CPU backend's objects and the references. It is not installed.
$(REF): $(call obj,$(REF_SRC) $(CPU_SRC)) $(BASE_LIB)
	@mkdir -p $(@D)
	$(call said,LINK,$@)
	$(Q)$(CC) $(ALLFLAGS) -fopenmp $(PLUGIN_LD) $^ -o $@ $(HARDEN_LD) $(LDFLAGS) -ldnnl -lm
$(filter $(BUILD)/tests/ops/% $(BUILD)/tests/gpu/%,$(TESTS) $(TOOLS)): | $(REF)

$(BUILD)/lib/gtrain/fetch.so: $(call obj,$(FETCH_SRC) datasets/tar_reader.c) $(BASE_LIB)
	@mkdir -p $(@D)
	$(call said,LINK,$@)
	$(Q)$(CC) $(ALLFLAGS) $(PLUGIN_LD) $^ -o $@ $(HARDEN_LD) $(LDFLAGS) -lcurl -lcrypto -lz -lm

$(BUILD)/lib/gtrain/draw.so: $(call obj,$(DRAW_SRC)) $(BASE_LIB)
	@mkdir -p $(@D)
	$(call said,LINK,$@)
	$(Q)$(CC) $(ALLFLAGS) $(PLUGIN_LD) $^ -o $@ $(HARDEN_LD) $(LDFLAGS) -lcairo -lm

$(BUILD)/lib/gtrain/archive.so: $(call obj,$(PACKED_SRC)) $(BASE_LIB)
	@mkdir -p $(@D)
	$(call said,LINK,$@)
	$(Q)$(CC) $(ALLFLAGS) $(PLUGIN_LD) $^ -o $@ $(HARDEN_LD) $(LDFLAGS) -larchive -lm

$(BUILD)/lib/gtrain/mlflow.so: $(call obj,$(MLFLOW_SRC)) $(BASE_LIB)
	@mkdir -p $(@D)
	$(call said,LINK,$@)
	$(Q)$(CC) $(ALLFLAGS) $(PLUGIN_LD) $^ -o $@ $(HARDEN_LD) $(LDFLAGS) -lcurl -lm

$(BUILD)/tests/%: tests/%.c $(call obj,$(TEST_LIB)) $(BUILD)/libgtrain.a
	@mkdir -p $(@D)
	$(call said,LINK,$@)
	$(Q)$(CC) $(ALLFLAGS) -Itests -MMD -MP $< $(call obj,$(TEST_LIB)) $(BUILD)/libgtrain.a -o $@ $(LDFLAGS) $(LIBS)

## tests: builds the test programs without running them
.PHONY: tests
tests: all $(TESTS) $(TOOLS) $(CUDASIM)

## demo: installs what is missing, builds, trains FashionMNIST from configs/fmnist_mlp.cfg (RUN: where to), prints the test accuracy
RUN  ?= runs/demo
.PHONY: demo
demo:
	@scripts/deps.sh run
	@$(MAKE) --no-print-directory -j$(shell nproc) all
	@rm -rf "$(RUN)"
	$(BUILD)/bin/gtrain run configs/fmnist_mlp.cfg --out "$(RUN)" $(ARGS)

## check: installs what is missing, builds and runs every test (about 20 minutes on two idle cores)
.PHONY: check
check:
	@scripts/deps.sh test
	@$(MAKE) --no-print-directory -j$(shell nproc) tests
	@$(MAKE) --no-print-directory check-deps check-headers
	@echo '$(words $(TESTS) $(TEST_SH)) test programs: about 20 minutes on two idle cores (make check-quick: only the most important ones)'
	@tests/run $(BUILD) $(TESTS) $(TEST_SH)

## check-quick: builds without CUDA, runs only the most important tests
.PHONY: check-quick
check-quick:
	@scripts/deps.sh quick
	@$(MAKE) --no-print-directory -j$(shell nproc) CUDA= all $(filter $(BUILD)/%,$(QUICK))
	@tests/run $(BUILD) $(QUICK)

## check-only: runs some tests, e.g. make check-only T='conf' (a word in their file names)
T_TESTS = $(foreach t,$(TESTS) $(TEST_SH),$(if $(findstring $(T),$(t)),$(t)))
.PHONY: check-only
check-only: tests
	@tests/run $(BUILD) $(T_TESTS)

## check-changed: builds without CUDA, runs the tests of the rooms that differ from HEAD, or from BASE=COMMIT (tests/rooms.txt)
BASE ?= HEAD
.PHONY: check-changed
check-changed:
	@scripts/deps.sh quick
	@set -f; tests=$$(scripts/check-changed.sh $(BUILD) $(BASE)) && \
		if [ -z "$$tests" ]; then echo 'check-changed: nothing that has tests differs from $(BASE)'; exit; fi; \
		sim=$$(echo "$$tests" | grep -q /cudasim/ && echo $(CUDASIM)); \
		$(MAKE) --no-print-directory -j$(shell nproc) CUDA= all $$sim $$(echo "$$tests" | grep -v '\.sh$$') && \
		$(MAKE) --no-print-directory CUDA= check-deps check-headers && tests/run $(BUILD) $$tests

## check-cuda: the tests that need a CUDA toolkit: cuDNN's plans, registers and spills, the kernels' PTX, the folder for a GPU's machine
CUDA_TESTS := $(filter tests/cuda/% tests/ptx/% tests/gpu/%,$(TEST_SH))
.PHONY: check-cuda
check-cuda:
	@if [ -z "$(CUDA)" ]; then echo 'check-cuda: there is no CUDA toolkit on this machine (make CUDA=DIR names one)'; \
		else $(MAKE) --no-print-directory -j$(shell nproc) all $(TOOLS) $(CUDASIM) && tests/run $(BUILD) $(CUDA_TESTS); fi

## check-isa: the tests of operations, parity and resumed runs as on a processor with AVX2 and without AVX-512 (build/avx2)
# The compiler uses AVX2 and no clones for more; oneDNN is limited by its own variable.
ISA_BUILD := build/avx2
ISA_TESTS := $(patsubst tests/%.c,$(ISA_BUILD)/tests/%,$(wildcard tests/ops/test_*.c)) \
             $(wildcard tests/parity/test_*.sh tests/resume/test_*.sh)
ISA_TOOLS := $(patsubst tests/%.c,$(ISA_BUILD)/tests/%,$(wildcard tests/parity/tool_*.c) tests/par/tool_port.c)
.PHONY: check-isa
check-isa:
	@scripts/deps.sh quick
	@if ! grep -qw avx2 /proc/cpuinfo; then echo 'check-isa: this processor has no AVX2, so make check itself tests it'; exit; fi; \
		$(MAKE) --no-print-directory -j$(shell nproc) BUILD=$(ISA_BUILD) CUDA= GLOO= \
		CFLAGS='$(CFLAGS) -march=x86-64-v3 -DGT_NO_CLONES' all $(filter $(ISA_BUILD)/%,$(ISA_TESTS)) $(ISA_TOOLS) && \
		ONEDNN_MAX_CPU_ISA=AVX2 tests/run $(ISA_BUILD) $(ISA_TESTS)

## check-arm64: cross-compiles for arm64 (build/arm64) and runs check-quick's tests under qemu; T=word: those with the word in their names
# An emulated program is many times slower, so this is no part of make check.
ARM64_BUILD := build/arm64
ARM64_TESTS = $(patsubst $(BUILD)/%,$(ARM64_BUILD)/%,$(if $(T),$(T_TESTS),$(QUICK)))
.PHONY: check-arm64
check-arm64:
	@if [ "$$(uname -m)" = aarch64 ]; then echo 'check-arm64: this machine has an arm64 processor, so make check itself tests it'; \
		else scripts/check-arm64.sh $(ARM64_BUILD) $(ARM64_TESTS); rc=$$?; [ $$rc = 77 ] || exit $$rc; fi

## check-faults: every sweep of faults in full: kills, failing calls, power loss, flipped bits, refused memory, lost ranks (30 minutes)
.PHONY: check-faults
check-faults: tests
	@tests/crash/check_faults.sh $(BUILD)

## gpu-folder: a folder (build/gpu, below 51 MiB) that runs prove-gpu, check-gpu, bench-gpu on a machine with a GPU and no packages
.PHONY: gpu-folder
gpu-folder: all $(TOOLS) $(BUILD)/tests/ops/test_ops $(BUILD)/tests/ops/test_updates
	@tests/gpu/folder.sh $(BUILD) $(BUILD)/gpu

## check-gpu: the CUDA backend on a GPU against PyTorch's results and the CPU; SECTIONS='table nan': some of it (tests/gpu/README.md)
.PHONY: check-gpu
check-gpu: tests
	@tests/gpu/check.sh $(BUILD) $(SECTIONS)

## prove-gpu: on a GPU, in 10 minutes: checks, smoke tests against the CPU, speed; a file and a page for a report (tests/gpu/README.md)
.PHONY: prove-gpu
prove-gpu: all
	@tests/gpu/prove.sh --probe $(BUILD)
	@$(MAKE) --no-print-directory tests
	@tests/gpu/prove.sh $(BUILD)

## bench-gpu: the speed table on a GPU, PyTorch beside it
.PHONY: bench-gpu
bench-gpu: all
	@tests/gpu/bench.sh $(BUILD)

## check-deps: includes run one way, vendors' headers stay in their rooms, files that are named exist, 140 columns a line
.PHONY: check-deps
check-deps:
	@scripts/check-deps.sh

## check-headers: every header compiles alone
# nvcc and g++ compile the headers of kernels/cuda/ and of the simulator in their builds. A header that includes one of kernels/cuda/
# needs the headers of CUDA and cuDNN.
.PHONY: check-headers
check-headers:
	@for h in $$(git ls-files '*.h' | grep -v '^kernels/cuda/\|^tests/cudasim/'); do \
		if [ -z "$(CUDNN_H)" ] && grep -q '^#include "cuda/' $$h; then \
			echo "check-headers: $$h is left out, because the headers of CUDA and cuDNN are not installed"; continue; fi; \
		$(CC) -std=gnu17 -D_GNU_SOURCE $(INC) $(CUDA_INC) -Itests -Wall -Wextra -Wno-unused-function -fsyntax-only -x c $$h || \
			exit 1; done
ifneq ($(GLOO),)
	@for h in $$(git ls-files '*.hh'); do \
		$(CXX) -std=c++17 $(INC) $(GLOO_INC) -Wall -Wextra -fsyntax-only -x c++ $$h || exit 1; done
endif

## asan: every test under AddressSanitizer (build/asan)
# Leaks are not looked for: LeakSanitizer's tracer dies in processes that have loaded oneDNN's threads.
.PHONY: asan
asan:
	@ASAN_OPTIONS=detect_leaks=0 $(MAKE) --no-print-directory check BUILD=build/asan CUDA= \
		CFLAGS='-O1 -g -fsanitize=address -fno-omit-frame-pointer'

## ubsan: every test under UndefinedBehaviorSanitizer (build/ubsan)
.PHONY: ubsan
ubsan:
	@$(MAKE) --no-print-directory check BUILD=build/ubsan CUDA= CFLAGS='-O1 -g -fsanitize=undefined -fno-sanitize-recover=all'

## tsan: ranks that are threads of one process (mode dp) under ThreadSanitizer (build/tsan)
# Without clones for instruction sets: the loader would call their resolvers before ThreadSanitizer is ready.
.PHONY: tsan
tsan:
	@$(MAKE) --no-print-directory BUILD=build/tsan CUDA= GLOO= CFLAGS='-O1 -g -fsanitize=thread -DGT_NO_CLONES' \
		build/tsan/bin/gtrain build/tsan/lib/gtrain/cpu.so
	@tests/par/tsan.sh build/tsan

## fuzz: libFuzzer (clang, ASan, UBSan) on one reader for S seconds, e.g. make fuzz F=idx S=60 (idx, cifar, image, conf …)
F ?= idx
S ?= 60
.PHONY: fuzz
fuzz: HARDEN =
fuzz:
	@$(MAKE) --no-print-directory BUILD=build/fuzz CC=clang \
		CFLAGS='-O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined' build/fuzz/libgtrain.a
	clang $(ALLFLAGS) -Itests -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined tests/fuzz/fuzz_$(F).c \
		build/fuzz/libgtrain.a -o build/fuzz/fuzz_$(F) $(LDFLAGS) $(LIBS)
	@mkdir -p build/fuzz/corpus-$(F) && \
		cp -n $(if $(filter conf,$(F)),configs/*.cfg tests/corpus/config/*.cfg,tests/corpus/*/$(F)-*) build/fuzz/corpus-$(F)
	build/fuzz/fuzz_$(F) -max_total_time=$(S) -max_len=16384 -timeout=5 -rss_limit_mb=2048 build/fuzz/corpus-$(F)

## lint: compiler warnings as errors, manual pages and scripts checked
.PHONY: lint
lint:
	@$(MAKE) --no-print-directory BUILD=build/lint CFLAGS='-O2 -Werror' tests
	@mandoc -T lint -W warning man/*.[157]
	@shellcheck $$(git ls-files '*.sh' tests/run .ci/run)

## format: clang-format over every C file
.PHONY: format
format:
	@git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

## bench: the speed table, PyTorch beside it where python3 has it; appends to tests/bench/RESULTS.md
.PHONY: bench
bench: all
	@tests/bench/bench.sh $(BUILD)

## bench-ops: operations beside PyTorch's, in pairs (TORCH_PYTHON); ISA=avx2: both limited to AVX2; ARGS='--below 1 conv': some rows
.PHONY: bench-ops
bench-ops: all $(BUILD)/tests/bench/bench_cpu
	@if [ "$(ISA)" = avx2 ] && [ $(BUILD) != $(ISA_BUILD) ]; then \
		$(MAKE) --no-print-directory BUILD=$(ISA_BUILD) CUDA= GLOO= CFLAGS='$(CFLAGS) -march=x86-64-v3 -DGT_NO_CLONES' $@; \
	else python3 tests/bench/bench_ops.py --build $(BUILD) $(addprefix --isa ,$(ISA)) $(ARGS); fi

## bench-pipe: the idle share of a pipeline on two cores beside what its schedules say; appends to tests/bench/RESULTS.md
.PHONY: bench-pipe
bench-pipe: all
	@tests/bench/bench_pipe.sh $(BUILD)

## install: to $(DESTDIR)$(prefix)
DEST = $(DESTDIR)$(prefix)
.PHONY: install
install: all
	install -d "$(DEST)/bin" "$(DEST)/lib/gtrain" "$(DEST)/share/man/man1" "$(DEST)/share/man/man5" "$(DEST)/share/man/man7" \
		"$(DEST)/share/gtrain/configs" "$(DEST)/share/gtrain/deploy" \
		"$(DEST)/share/bash-completion/completions" "$(DEST)/share/zsh/site-functions" \
		"$(DEST)/share/fish/vendor_completions.d" "$(DEST)/share/vim/vimfiles/syntax" "$(DEST)/share/vim/vimfiles/ftdetect" \
		"$(DEST)/share/gtrain/vscode"
	install -m 755 $(BUILD)/bin/gtrain "$(DEST)/bin"
	install -m 644 $(PLUGINS) "$(DEST)/lib/gtrain"
	install -m 644 configs/*.cfg "$(DEST)/share/gtrain/configs"
	install -m 755 deploy/*.sh "$(DEST)/share/gtrain/deploy"
	install -m 644 deploy/kubernetes.yaml deploy/*.py "$(DEST)/share/gtrain/deploy"
	install -m 644 man/*.1 "$(DEST)/share/man/man1"
	install -m 644 man/*.5 "$(DEST)/share/man/man5"
	install -m 644 man/*.7 "$(DEST)/share/man/man7"
	install -m 644 $(BUILD)/completions/gtrain.bash "$(DEST)/share/bash-completion/completions/gtrain"
	install -m 644 $(BUILD)/completions/_gtrain "$(DEST)/share/zsh/site-functions"
	install -m 644 $(BUILD)/completions/gtrain.fish "$(DEST)/share/fish/vendor_completions.d"
	install -m 644 $(BUILD)/completions/gtrain.vim "$(DEST)/share/vim/vimfiles/syntax"
	install -m 644 cli/editors/ftdetect.vim "$(DEST)/share/vim/vimfiles/ftdetect/gtrain.vim"
	install -m 644 cli/editors/*.json "$(DEST)/share/gtrain/vscode"
	install -m 644 $(BUILD)/completions/gtrain.vscode "$(DEST)/share/gtrain/vscode/gtrain.tmLanguage.json"
	install -m 644 $(BUILD)/completions/gtrain.json-schema "$(DEST)/share/gtrain/config.schema.json"

## uninstall: removes what install put there
.PHONY: uninstall
uninstall:
	rm -f "$(DEST)/bin/gtrain" $(foreach p,$(notdir $(wildcard man/*.[157])),"$(DEST)/share/man/man$(subst .,,$(suffix $p))/$p") \
		"$(DEST)/share/bash-completion/completions/gtrain" \
		"$(DEST)/share/zsh/site-functions/_gtrain" "$(DEST)/share/fish/vendor_completions.d/gtrain.fish" \
		"$(DEST)/share/vim/vimfiles/syntax/gtrain.vim" "$(DEST)/share/vim/vimfiles/ftdetect/gtrain.vim"
	rm -rf "$(DEST)/lib/gtrain" "$(DEST)/share/gtrain"

## dist: the sources of HEAD as an archive, build/gtrain-VERSION.tar.gz
.PHONY: dist
dist:
	@mkdir -p $(BUILD)
	@version=$$(scripts/version.sh) && git archive --prefix="gtrain-$$version/" -o "$(BUILD)/gtrain-$$version.tar.gz" HEAD && \
		echo "$(BUILD)/gtrain-$$version.tar.gz"

## deb: installs what is missing, builds the Debian packages of HEAD into build/deb (DEB_BUILD_PROFILES=pkg.gtrain.cuda: with gtrain-cuda)
.PHONY: deb
deb:
	@scripts/deps.sh deb
	@env -u MAKEFLAGS -u MAKELEVEL scripts/deb.sh -b

## clean: removes every build folder
.PHONY: clean
clean:
	rm -rf build

## list: this list
.PHONY: list
list:
	@sed -n 's/^## //p' $(MAKEFILE_LIST) | sed 's/^\([a-z-]*\): /\1\t/' | expand -t 16

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
