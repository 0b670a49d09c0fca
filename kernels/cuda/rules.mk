# SPDX-License-Identifier: Apache-2.0
# make cuda-emulated: the kernels for NVIDIA GPUs, on the CPU, which needs no CUDA
# (kernels/cuda/README.md). Part of the Makefile above; nothing else builds them.

# CUDA_FUNCTIONS, KERNELS, DTYPES, EMULATED=-DF32_ALONE: a few, for a test that has seconds (tests/support/cuda.sh).
CUDA_FUNCTIONS ?= %
cuda_functions := $(filter $(CUDA_FUNCTIONS),$(basename $(notdir $(sort $(wildcard kernels/cuda/*.cu)))))
cuda_kernels := $(filter $(KERNELS),$(filter-out driver,$(basename $(notdir $(sort $(wildcard kernels/cuda/*.c))))))
# By the CPU's recipes, an operation a launch (operations.h).
cuda_composed := $(filter rmsnorm_% layernorm_% add_rmsnorm_% prmsnorm_% batchnorm_%,$(filter %_composed,$(kernels)))
cuda_headers := $(wildcard kernels/cuda/*.h kernels/shared/*.h kernels/batchnorm/*.h kernels/backward/*.h kernels/simd/scalar.h) kernels/kernel.h
cuda_device_headers := $(patsubst %,kernels/cuda/%.h,args device emulated formula launch team) kernels/simd/scalar.h kernels/kernel.h
backend_cuda := CUDA
backend_cuda_emulated := CUDA_EMULATED
CUDA_CXXFLAGS = -std=c++17 $(OPT) -fPIC -fno-exceptions -fno-rtti -fvisibility=hidden -ffp-contract=off -Wall -Wextra -Wno-unused-parameter \
	-Wno-unknown-pragmas $(WERROR) $(EMULATED) $(SANITIZE) $(and $(SANITIZE),$(findstring clang,$(CXX)),-fno-sanitize=function) $(ISA_V3) -I.

# The host parts: an object for each kernel and dtype.
define cuda_rules
cuda_objects_$(1) := $(BUILD)/$(1)/table.o $(foreach d,$(DTYPES),$(patsubst %,$(BUILD)/$(1)/%_$(d).o,$(cuda_kernels) $(cuda_composed)))
$(call keep,$(BUILD)/$(1)/kernel_list.h,$(call entries,NB_KERNEL_ENTRY,$(foreach k,$(cuda_kernels) $(cuda_composed),$(foreach d,$(DTYPES),$(k)_$(1)_$(d)))))
$(BUILD)/$(1)/table.o: kernels/table.c kernels/kernel.h $(BUILD)/$(1)/kernel_list.h
	$$(CC) $$(KERNEL_CFLAGS) -I. -I$(BUILD)/$(1) -c -o $$@ $$<
$(foreach d,$(DTYPES),$(call cuda_variant_rule,$(1),$(d)))
endef
define cuda_variant_rule

$(BUILD)/$(1)/%_$(2).o: kernels/cuda/%.c $(cuda_headers) $(pch_file_scalar)
	$$(call say,CC)
	$$(CC) $$(KERNEL_CFLAGS) $$(isa_scalar) $$(pch_scalar) -I. -DNB_SIMD_HEADER='"kernels/cuda/width.h"' -DNB_BACKEND=NB_BACKEND_$(backend_$(1)) \
	  -DNB_VARIANT=$(1) -DNB_DTYPE=NB_$(type_$(2)) -DNB_DTYPE_NAME=$(2) -DNB_DTYPE_IS_$(type_$(2)) -c -o $$@ $$<
$(BUILD)/$(1)/%_composed_$(2).o: %_composed.c $(cuda_headers) $(pch_file_scalar)
	$$(call say,CC)
	$$(CC) $$(KERNEL_CFLAGS) -Wno-override-init $$(isa_scalar) $$(pch_scalar) -I. -DNB_SIMD_HEADER='"kernels/cuda/width.h"' -DNB_OPERATIONS='"kernels/cuda/operations.h"' \
	  -DNB_BACKEND=NB_BACKEND_$(backend_$(1)) -DNB_VARIANT=$(1) -DNB_DTYPE=NB_$(type_$(2)) -DNB_DTYPE_NAME=$(2) -DNB_DTYPE_IS_$(type_$(2)) -c -o $$@ $$<
endef
ifneq ($(filter cuda cuda-emulated cuda-bundle $(BUILD)/libnormkernels_cuda% $(BUILD)/tests/planted/%,$(MAKECMDGOALS)),)
$(eval $(call cuda_rules,cuda))
$(eval $(call cuda_rules,cuda_emulated))
endif

cuda-emulated: $(BUILD)/libnormkernels_cuda_emulated.so
$(BUILD)/cuda_emulated/%.o: kernels/cuda/%.cu $(cuda_device_headers)
	$(call say,CXX)
	@mkdir -p $(dir $@)
	$(CXX) $(CUDA_CXXFLAGS) -x c++ -c -o $@ $<
$(BUILD)/cuda_emulated/emulated.o: kernels/cuda/emulated.cpp $(cuda_device_headers)
	$(call say,CXX)
	@mkdir -p $(dir $@)
	$(CXX) $(CUDA_CXXFLAGS) -c -o $@ $<
$(BUILD)/libnormkernels_cuda_emulated.so: $(cuda_objects_cuda_emulated) $(patsubst %,$(BUILD)/cuda_emulated/%.o,$(cuda_functions) emulated)
	$(call say,LD)
	$(CC) $(SANITIZE) -shared -Wl,-Bsymbolic -Wl,-z,noexecstack -o $@ $^ -lm
# With a mistake in them, to see that it is found (tests/cli/cuda_emulated.sh).
mistaken := rows kept gradient
$(BUILD)/tests/planted/%.so: $(mistaken:%=kernels/cuda/%.cu) $(BUILD)/libnormkernels_cuda_emulated.so
	@mkdir -p $(dir $@)
	$(foreach f,$(mistaken),$(CXX) $(CUDA_CXXFLAGS) -O1 -DPLANTED=$* -x c++ -c -o $(@:.so=_$(f).o) kernels/cuda/$(f).cu &&) true
	$(CC) -shared -Wl,-Bsymbolic -Wl,-z,noexecstack -o $@ $(mistaken:%=$(@:.so=_%.o)) $(cuda_objects_cuda_emulated) \
	  $(patsubst %,$(BUILD)/cuda_emulated/%.o,$(filter-out $(mistaken),$(cuda_functions)) emulated) -lm

# For GPUs. nvcc: of CUDA_HOME, else on PATH, else what `make cuda-compiler` gets.
CUDA_COMPILER ?= $(PEERS_DIR)/cuda
NVCC ?= $(or $(if $(CUDA_HOME),$(CUDA_HOME)/bin/nvcc),$(shell command -v nvcc),$(wildcard $(CUDA_COMPILER)/bin/nvcc))
NVCC_FLAGS := -std=c++17 -O3 -fmad=false -prec-div=true -prec-sqrt=true -ftz=false -I.
# Code for the devices of these that the compiler knows (12.8 is the first that knows sm_100), and PTX for all others.
cuda_known := sm_80 sm_90 sm_100
CUDA_TARGETS ?= $(cuda_known) compute_80
cuda_targets = $(foreach t,$(CUDA_TARGETS),-gencode arch=$(subst sm,compute,$(t)),code=$(t))
ifneq ($(filter cuda cuda-code cuda-bundle $(BUILD)/libnormkernels_cuda.so $(BUILD)/cuda/%,$(MAKECMDGOALS)),)
cuda_release := $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p'))
cuda_known := $(if $(NVCC),$(filter $(shell $(NVCC) --list-gpu-code),$(cuda_known)),$(cuda_known))
# The compiler, for driver.c and so that another one compiles anew.
define cuda_compiler
/* $(NVCC) $(NVCC_FLAGS) $(cuda_targets) */
#define CUDA_MAJOR $(firstword $(subst ., ,$(cuda_release) 13))
endef
$(call keep,$(BUILD)/cuda/compiler.h,$(cuda_compiler))
endif
.PHONY: cuda cuda-code cuda-compiler
cuda-compiler:
	kernels/cuda/get.sh $(CUDA_COMPILER)
cuda: $(BUILD)/libnormkernels_cuda.so
needs_nvcc = $(if $(NVCC),,$(error no nvcc: set CUDA_HOME, put nvcc on PATH, or make cuda-compiler))
$(BUILD)/cuda/%.fatbin: kernels/cuda/%.cu $(cuda_device_headers) $(BUILD)/cuda/compiler.h
	$(needs_nvcc)
	$(call say,NVCC)
	$(NVCC) $(NVCC_FLAGS) $(cuda_targets) -fatbin -o $@ $<
# What tests/cli/cuda_code.sh looks at: one device function of each kind for sm_90, of a family for the others; with CODE=all every one, and of each kind.
code := code$(CODE)
cuda-code: $(foreach t,$(cuda_known),$(patsubst %,$(BUILD)/cuda/$(code)/%.$(t).cubin,$(cuda_functions)))
define cuda_code_rule
$(BUILD)/cuda/$(code)/%.$(1).cubin: kernels/cuda/%.cu $(cuda_device_headers) $(BUILD)/cuda/compiler.h
	$$(needs_nvcc)
	$$(call say,NVCC)
	@mkdir -p $$(dir $$@)
	$$(NVCC) $$(NVCC_FLAGS) $(if $(filter sm_90all,$(1)$(CODE)),,-DONE_OF_EACH)$(if $(CODE)$(filter sm_90,$(1)),, -DONE_A_FAMILY) -arch=$(1) -cubin -o $$@ $$<
endef
$(foreach t,sm_80 sm_90 sm_100,$(eval $(call cuda_code_rule,$(t))))
# The fat binaries, and their table for driver.c.
define cuda_module

  .section .rodata
  .balign 64
image_$(1): .incbin "$(BUILD)/cuda/$(1).fatbin"
name_$(1): .asciz "$(1)"
  .section .data.rel.ro, "aw"
  .quad name_$(1), image_$(1)
endef
define cuda_modules
  .section .data.rel.ro, "aw"
  .globl nb_cuda_modules
  .hidden nb_cuda_modules
  .balign 16
nb_cuda_modules:
$(foreach f,$(cuda_functions),$(call cuda_module,$(f)))
  .section .data.rel.ro, "aw"
  .quad 0, 0
  .section .note.GNU-stack, "", @progbits
endef
$(BUILD)/cuda/modules.o: $(patsubst %,$(BUILD)/cuda/%.fatbin,$(cuda_functions))
	$(file >$(@:.o=.s),$(cuda_modules))
	$(CC) -c -o $@ $(@:.o=.s)
$(BUILD)/cuda/driver.o: kernels/cuda/driver.c $(cuda_device_headers) $(BUILD)/cuda/compiler.h
	$(call say,CC)
	$(CC) $(CFLAGS_ALL) -I. -include $(BUILD)/cuda/compiler.h -fvisibility=hidden -c -o $@ $<
$(BUILD)/libnormkernels_cuda.so: $(cuda_objects_cuda) $(BUILD)/cuda/driver.o $(BUILD)/cuda/modules.o
	$(call say,LD)
	$(CC) -shared -Wl,-Bsymbolic -Wl,-z,noexecstack -o $@ $^ -ldl -lpthread

# What a machine with a GPU and nothing of ours runs (tests/cuda/gpu.sh): the program on the tests' kernels, with the libraries that it is linked to but for
# the C library's, found beside it. The program's own libraries find each other by its path, which DT_RUNPATH would not do.
BUNDLE ?= $(BUILD)/bundle
CUDA_LIBRARY ?= $(BUILD)/libnormkernels_cuda.so
c_library := libc[.] libm[.] libdl[.] libpthread[.] librt[.] ld-linux linux-vdso
.PHONY: cuda-bundle
cuda_calls := $(BUILD)/tests/cuda/calls
$(cuda_calls): $(cuda_calls).o $(src_objects)
	$(call say,LD)
	$(CC) $(SANITIZE) -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/lib' -o $@ $^ $(LIBS)
cuda-bundle: $(CUDA_LIBRARY) $(BUILD)/libnormkernels_cuda_emulated.so $(TEST_KERNELS) $(cuda_calls) $(src_objects) $(report_objects) $(cmd_objects)
	$(call say,BUNDLE)
	rm -rf $(BUNDLE)
	mkdir -p $(BUNDLE)/lib $(BUNDLE)/tests
	$(CC) $(SANITIZE) -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/lib' -s -o $(BUNDLE)/normbench $(filter %.o,$^) $(LIBS)
	cp $(cuda_calls) $(BUNDLE)/
	ldd $(BUNDLE)/normbench | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | grep -v $(foreach l,$(c_library),-e $l) | xargs -I '{}' cp -L '{}' $(BUNDLE)/lib/
	cp $(CUDA_LIBRARY) $(BUILD)/libnormkernels_cuda_emulated.so $(BUNDLE)/
	cp $(TEST_KERNELS) $(BUNDLE)/libnormkernels.so
	cp -r configs LICENSE $(BUNDLE)/
	cp -r tests/data $(BUNDLE)/tests/
	cp tests/cuda/gpu.sh tests/cuda/gpu.awk tests/cuda/peers.py tests/cuda/check.json tests/cuda/time.json $(BUNDLE)/
	strip --strip-unneeded $(BUNDLE)/*.so $(BUNDLE)/lib/*
	du -sh $(BUNDLE) | sed 's/^/  /'
# Launches in emulation, for a driver that is a mock.
$(BUILD)/tests/mock_launcher.so: tests/cuda/mock_launcher.c $(patsubst %,$(BUILD)/cuda_emulated/%.o,$(cuda_functions) emulated)
	@mkdir -p $(dir $@)
	$(CC) $(CFLAGS_ALL) -I. -fvisibility=hidden -shared -Wl,-Bsymbolic -o $@ $^ -lm
