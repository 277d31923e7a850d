# The communicator across hosts, lib/gtrain/gloo.so. Built where gloo and a C++ compiler are found; everything else works without.
#   GLOO=DIR    the folder with include/gloo and lib/libgloo.so; GLOO= builds without. Without GLOO=: /usr
ifeq ($(origin GLOO),undefined)
GLOO := $(if $(shell command -v $(firstword $(CXX))),$(patsubst %/include/gloo/transport/tcp/device.h,%,$(firstword \
	$(wildcard /usr/include/gloo/transport/tcp/device.h /usr/local/include/gloo/transport/tcp/device.h))))
endif

ifneq ($(GLOO),)
ifeq ($(wildcard $(GLOO)/include/gloo/transport/tcp/device.h),)
$(error GLOO=$(GLOO): no include/gloo/transport/tcp/device.h in it (`make GLOO=` builds without))
endif
GLOO_OBJ := $(call obj,$(wildcard kernels/gloo/*.c)) $(patsubst %.cc,$(BUILD)/obj/%.o,$(wildcard kernels/gloo/*.cc))
GLOO_INC := $(if $(filter /usr,$(GLOO)),,-isystem $(GLOO)/include)
GLOO_LIB := $(if $(filter /usr,$(GLOO)),,-L$(GLOO)/lib -Wl,-rpath,$(abspath $(GLOO)/lib))
PLUGINS  += $(BUILD)/lib/gtrain/gloo.so

$(BUILD)/obj/kernels/gloo/%.o: kernels/gloo/%.cc Makefile kernels/gloo/gloo.mk
	@mkdir -p $(@D)
	$(call said,CXX,$@)
	$(Q)$(CXX) -std=c++17 -Wall -Wextra -Wshadow -Wundef -fPIC -fvisibility=hidden -pthread $(INC) $(GLOO_INC) $(HARDEN) \
		$(CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/lib/gtrain/gloo.so: $(GLOO_OBJ) $(BASE_LIB)
	@mkdir -p $(@D)
	$(call said,LINK,$@)
	$(Q)$(CXX) $(CFLAGS) -pthread $(PLUGIN_LD) $^ -o $@ $(HARDEN_LD) $(LDFLAGS) $(GLOO_LIB) -lgloo -lm
else
all: no-gloo
.PHONY: no-gloo
no-gloo:
	@echo 'note: built without gloo, which needs libgloo-dev and a C++ compiler: no ranks across hosts on CPUs'
endif
