# The CUDA backend, lib/gtrain/cuda.so. Built where a toolkit is found, absent elsewhere; everything else works without it.
#   CUDA=DIR    the toolkit (DIR/bin/nvcc, DIR/include, DIR/lib64 or lib); CUDA= builds without
#   CUDA_ARCH   architectures with machine code: by default 80 and 90, and 100 and 120 if nvcc knows them. The code for 90 and newer is made
#               from the PTX of compute_90, which is always included: the driver compiles it for cards without code
# Without CUDA=: /usr/local/cuda, then python3's pip packages nvidia-cuda-nvcc, nvidia-cuda-crt, nvidia-nvvm, nvidia-cuda-runtime and
# nvidia-cublas 13.x. The wheels of CUDA 12 hold no nvcc; their cuBLAS is still found at run time.
ifeq ($(origin CUDA),undefined)
CUDA := $(patsubst %/bin/nvcc,%,$(firstword $(wildcard /usr/local/cuda/bin/nvcc)))
ifeq ($(CUDA),)
CUDA := $(patsubst %/bin/nvcc,%,$(firstword $(shell python3 -c 'import glob, site; \
	dirs = site.getsitepackages() + [site.getusersitepackages()]; \
	print(*sorted(f for d in dirs for f in glob.glob(d + "/nvidia/cu*/bin/nvcc")))' 2>/dev/null)))
endif
endif

ifneq ($(CUDA),)
ifeq ($(wildcard $(CUDA)/bin/nvcc),)
$(error CUDA=$(CUDA): no bin/nvcc in it (`make CUDA=` builds without CUDA))
endif

ifeq ($(shell command -v $(firstword $(CXX))),)
$(error $(CUDA) is a CUDA toolkit, but its nvcc needs a C++ compiler and there is no $(CXX) (`make CUDA=` builds without CUDA))
endif

# cuDNN's headers: beside the toolkit, where the compiler looks, or in pip's nvidia-cudnn-cu13. Without them there are no convolutions.
CUDNN_H  := $(firstword $(wildcard $(CUDA)/include/cudnn_graph.h /usr/local/include/cudnn_graph.h /usr/include/cudnn_graph.h \
	/usr/include/*/cudnn_graph.h))
ifeq ($(CUDNN_H),)
CUDNN_H  := $(firstword $(shell python3 -c 'import glob, site; \
	dirs = site.getsitepackages() + [site.getusersitepackages()]; \
	print(*[f for d in dirs for f in glob.glob(d + "/nvidia/cudnn/include/cudnn_graph.h")])' 2>/dev/null))
CUDNN_INC := $(if $(CUDNN_H),-isystem $(patsubst %/cudnn_graph.h,%,$(CUDNN_H)))
endif

# NCCL's header, likewise: without it, GPUs communicate through their hosts only.
NCCL_H   := $(firstword $(wildcard $(CUDA)/include/nccl.h /usr/local/include/nccl.h /usr/include/nccl.h) \
	$(shell python3 -c 'import glob, site; \
	dirs = site.getsitepackages() + [site.getusersitepackages()]; \
	print(*[f for d in dirs for f in glob.glob(d + "/nvidia/nccl/include/nccl.h")])' 2>/dev/null))

CUDA_C   := $(filter-out $(if $(CUDNN_H),,$(patsubst %,kernels/cuda/cudnn_%.c, \
	attention conv lib plan trial tune)) \
	$(if $(NCCL_H),,kernels/cuda/comm_nccl.c kernels/cuda/nccl_lib.c), \
	$(wildcard kernels/cuda/*.c))
CUDA_CU  := $(wildcard kernels/cuda/*.cu)
CUDA_LIB := $(firstword $(wildcard $(CUDA)/lib64 $(CUDA)/lib $(CUDA)/lib/x86_64-linux-gnu))
CUDA_OBJ  = $(call obj,$(CUDA_C)) $(patsubst %.cu,$(BUILD)/obj/%.o,$(CUDA_CU))
CUDA_INC := -isystem $(CUDA)/include $(CUDNN_INC) \
	$(if $(NCCL_H),$(if $(filter $(CUDA)/include/nccl.h,$(NCCL_H)),,-isystem $(patsubst %/nccl.h,%,$(NCCL_H)))) \
	$(if $(CUDNN_H),,-DGT_CUDA_NO_CUDNN)
# The runtime is linked statically if its archive exists: one library less to find at run time.
CUDART   := $(firstword $(wildcard $(CUDA_LIB)/libcudart_static.a $(CUDA_LIB)/libcudart.so $(CUDA_LIB)/libcudart.so.*))
# cuBLASLt is opened when a device is, cuDNN at the first convolution (they are a gigabyte that would cost every start), through this
# list: the toolkit of the build, the plugin's folder, and pip's folders for a plugin in site-packages/gtrain/lib/gtrain. The
# loader's own folders follow.
CUDA_PIP   := $$ORIGIN/../../../nvidia
CUDA_RPATH := $(abspath $(CUDA_LIB)):$$ORIGIN:$(CUDA_PIP)/cu13/lib:$(CUDA_PIP)/cublas/lib:$(CUDA_PIP)/cudnn/lib:$(CUDA_PIP)/nccl/lib
# -fmad=false: as -ffp-contract=off for gcc (Makefile). The code calls a fused multiply-add explicitly.
NVCC      := $(CUDA)/bin/nvcc
CUDA_ARCH ?= 80 90 $(filter 100 120,$(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code)))
CUDA_ARCH := $(CUDA_ARCH)
# the architectures with their own PTX, and those whose code is made from the PTX of compute_90
CUDA_OLD  := $(filter 75 80 86 87 88 89,$(CUDA_ARCH))
CUDA_NEW  := $(filter-out $(CUDA_OLD),$(CUDA_ARCH))
comma     := ,
empty     :=
cuda_list  = $(subst $(empty) $(empty),$(comma),$(strip $(1)))
NVFLAGS    = -std=c++17 -O3 -fmad=false -Xptxas -v -ccbin $(CXX) $(INC) \
             -Xcompiler -fPIC,-fvisibility=hidden,-fno-exceptions,-Wall,-Wextra,-Wno-missing-field-initializers,-ffp-contract=off \
             $(foreach a,$(CUDA_OLD),-gencode arch=compute_$(a),code=sm_$(a)) \
             -gencode 'arch=compute_90,code=[$(call cuda_list,$(CUDA_NEW:%=sm_%) compute_90)]' \
             $(if $(filter -Werror,$(CFLAGS)),-Werror all-warnings -Xcompiler -Werror)

PLUGINS += $(BUILD)/lib/gtrain/cuda.so

# The versions for `gtrain --version`. They are those of the headers, because loading the libraries would take seconds.
cuda_define   = $(shell sed -nE 's/^\#define $(2) +([0-9]+) *$$/\1/p' $(1))
CUDNN_VER_H   = $(dir $(CUDNN_H))cudnn_version.h
CUDNN_VER     = $(call cuda_define,$(CUDNN_VER_H),CUDNN_MAJOR).$(call cuda_define,$(CUDNN_VER_H),CUDNN_MINOR)
NCCL_VER      = $(call cuda_define,$(NCCL_H),NCCL_MAJOR).$(call cuda_define,$(NCCL_H),NCCL_MINOR)
CUDA_VERSIONS = $(shell sed -nE 's/^\#define CUDA_VERSION +([0-9]+)0([0-9])0 *$$/CUDA \1.\2/p' $(CUDA)/include/cuda.h)$(if \
	$(CUDNN_H),$(comma) cuDNN $(CUDNN_VER))$(if $(NCCL_H),$(comma) NCCL $(NCCL_VER))
$(BUILD)/obj/cli/about.o: XFLAGS += -DGT_CUDA_VERSIONS='"$(strip $(CUDA_VERSIONS))"'

$(BUILD)/obj/kernels/cuda/%.o: XFLAGS += $(CUDA_INC)
$(BUILD)/obj/kernels/cuda/cuda_dev.o: XFLAGS += '-DGT_CUDA_CODE=$(call cuda_list,$(CUDA_ARCH))'

# ptxas's report on every kernel (registers, stack, spills) is kept beside the object: tests/cuda/test_ptxas.sh reads it. The PTX of each
# architecture is kept in $(BUILD)/ptx: tests/ptx/ runs it.
$(BUILD)/obj/%.o: %.cu Makefile kernels/cuda/cuda.mk
	@mkdir -p $(@:.o=.keep)
	@echo "nvcc $<"
	@$(NVCC) $(NVFLAGS) --keep --keep-dir $(@:.o=.keep) -MD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@ >$(@:.o=.ptxas) 2>&1 || \
		{ cat $(@:.o=.ptxas); exit 1; }
	@grep -i 'warning' $(@:.o=.ptxas) || true
	@for p in $(@:.o=.keep)/*.ptx; do \
		case $$p in *.compute_*.ptx) a=$${p##*.compute_} a=$${a%.ptx};; *) a=90;; esac; \
		mkdir -p $(BUILD)/ptx/$$a && mv $$p $(BUILD)/ptx/$$a/$(*F).ptx; done
	@rm -rf $(@:.o=.keep)

# PTX of a deleted source would define a kernel twice.
PTX_OF_GONE = $(filter-out $(foreach s,$(wildcard kernels/cuda/*.cu),%/$(notdir $(s:.cu=.ptx))),$(wildcard $(BUILD)/ptx/*/*.ptx))
$(BUILD)/lib/gtrain/cuda.so: $(CUDA_OBJ) $(BASE_LIB)
	@mkdir -p $(@D)
	@rm -f $(PTX_OF_GONE)
	$(CXX) $(PLUGIN_LD) -pthread $^ -o $@ $(HARDEN_LD) $(LDFLAGS) $(CUDART) -Wl,-rpath,'$(CUDA_RPATH)' \
		-Wl,--exclude-libs,ALL -Wl,-z,defs -ldl -lrt -lm

# Plans that the real cuDNN makes from a description of a card, without the card (tests/cuda/dnn_card.h).
ifneq ($(CUDNN_H),)
DNN_TESTS := $(patsubst %,$(BUILD)/tests/cuda/dnn_%,plans fusions attention)
TOOLS += $(DNN_TESTS)
$(BUILD)/obj/tests/cuda/%.o: XFLAGS += $(CUDA_INC) -Itests
$(DNN_TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(BUILD)/obj/tests/cuda/dnn_card.o $(BUILD)/obj/tests/test.o $(CUDA_OBJ) $(BASE_LIB)
	@mkdir -p $(@D)
	$(CXX) $(CFLAGS) -pthread $^ -o $@ $(LDFLAGS) $(CUDART) -Wl,-rpath,'$(CUDA_RPATH)' -ldl -lrt -lm
endif
endif
