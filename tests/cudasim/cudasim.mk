# The CUDA backend's own sources built against a CUDA runtime on the host (tests/cudasim/include): build/cudasim is laid out as the
# build folder is, so that the program and the tests in it open its cuda.so. Needs a C++ compiler, no toolkit.
ifneq ($(shell command -v $(firstword $(CXX))),)
SIM      := $(BUILD)/cudasim
SIM_LIB  := $(SIM)/lib/gtrain
SIM_SRC  := $(wildcard kernels/cuda/*.c kernels/cuda/*.cu)
SIM_OBJ  := $(patsubst %,$(SIM)/obj/%.o,$(SIM_SRC))
SIM_CXX   = $(CXX) -std=c++17 -Wall -Wextra -Wno-unknown-pragmas -Wno-missing-field-initializers -fPIC -ffp-contract=off -pthread \
            -D_GNU_SOURCE -Itests/cudasim/include $(INC) $(CFLAGS)
SIM_RPATH := -Wl,-rpath,'$$ORIGIN'
CUDASIM  := $(SIM_LIB)/cuda.so $(SIM_LIB)/libcublasLt.so.0 $(SIM_LIB)/libcudnn.so.0 $(SIM_LIB)/libnccl.so.0 \
            $(SIM_LIB)/cpu.so $(SIM_LIB)/ref.so $(SIM_LIB)/null.so $(COMMANDS:%=$(SIM_LIB)/%.so) $(SIM)/bin/gtrain \
            $(SIM)/tests/ops/test_ops $(SIM)/tests/ops/test_updates \
            $(SIM)/tests/cudasim/tool_calls $(SIM)/tests/cudasim/tool_layers $(SIM)/tests/cudasim/tool_device \
            $(SIM)/tests/cudasim/tool_conv $(SIM)/tests/cudasim/tool_dnn $(SIM)/tests/cudasim/tool_muon $(SIM)/tests/cudasim/tool_tables \
            $(SIM)/tests/cudasim/tool_joins $(SIM)/tests/cudasim/tool_fused \
            $(SIM)/tests/cudasim/tool_attention $(SIM)/tests/cudasim/tool_sequences \
            $(SIM)/tests/cudasim/tool_nccl $(SIM)/tests/gpu/tool_table $(SIM)/tests/gpu/tool_offers $(SIM)/tests/gpu/tool_versions \
            $(SIM)/tests/ptx/tool_shapes

$(SIM)/obj/%.c.o: %.c Makefile tests/cudasim/cudasim.mk
	@mkdir -p $(@D)
	$(CC) $(ALLFLAGS) -Itests/cudasim/include -DGT_CUDA_CHECK_OPERANDS -MMD -MP -c $< -o $@

$(SIM)/obj/%.cu.o: %.cu Makefile tests/cudasim/cudasim.mk
	@mkdir -p $(@D)
	$(SIM_CXX) -MMD -MP -x c++ -c $< -o $@

# Half of the time of these tests is spent in the loops of the stand-ins.
$(SIM)/obj/tests/cudasim/%.cc.o: CFLAGS += -O3
$(SIM)/obj/%.cc.o: %.cc Makefile tests/cudasim/cudasim.mk
	@mkdir -p $(@D)
	$(SIM_CXX) -MMD -MP -c $< -o $@

$(SIM_LIB)/libcudasim.so: $(patsubst %,$(SIM)/obj/tests/%.cc.o,cudasim/cudasim_run cudasim/cudasim_rt ptx/ptx_read ptx/ptx_ops ptx/ptx_run \
                         ptx/ptx_count)
	@mkdir -p $(@D)
	$(CXX) $(CFLAGS) -shared $^ -o $@ $(LDFLAGS) -ldl

$(SIM_LIB)/libcublasLt.so.0: $(SIM)/obj/tests/cudasim/cudasim_lt.cc.o $(SIM_LIB)/libcudasim.so
	$(CXX) $(CFLAGS) -shared $< -o $@ $(LDFLAGS) -L$(SIM_LIB) -lcudasim $(SIM_RPATH)

$(SIM_LIB)/libcudnn.so.0: $(patsubst %,$(SIM)/obj/tests/cudasim/cudasim_%.cc.o,dnn conv attention) $(SIM_LIB)/libcudasim.so
	$(CXX) $(CFLAGS) -shared $(filter %.o,$^) -o $@ $(LDFLAGS) -L$(SIM_LIB) -lcudasim $(SIM_RPATH)

$(SIM_LIB)/libnccl.so.0: $(SIM)/obj/tests/cudasim/cudasim_nccl.cc.o $(SIM_LIB)/libcudasim.so
	$(CXX) $(CFLAGS) -shared $< -o $@ $(LDFLAGS) -L$(SIM_LIB) -lcudasim $(SIM_RPATH)

$(SIM_LIB)/cuda.so: $(SIM_OBJ) $(BASE_LIB) $(SIM_LIB)/libcudasim.so
	$(CXX) $(CFLAGS) -shared $(SIM_OBJ) $(BASE_LIB) -o $@ $(LDFLAGS) -L$(SIM_LIB) -lcudasim $(SIM_RPATH) -ldl -lm

$(SIM)/%: $(BUILD)/%
	@mkdir -p $(@D)
	@ln -f $< $@
endif
