# SPDX-License-Identifier: Apache-2.0
# make peers PEERS="onednn-omp ggml": gets the libraries into PEERS_DIR, which git ignores, then builds the adapters of those that are
# there into $(BUILD)/peers/. Part of the Makefile above; nothing else builds an adapter. `normbench peers` reads it by itself, from where it is
# installed.
ifndef CFLAGS_ALL
CFLAGS_ALL := -std=gnu11 -O2 -fPIC -ffp-contract=off
say = @printf '  %-6s %s\n' $(1) $@
.SILENT:
endif

PEERS ?= onednn-omp pytorch ggml
PEERS_DIR ?= $(CURDIR)/peers

# What an adapter is made of: its kernels as OP.PASS.DTYPE, its sources, the library it asks for.
norms := $(foreach o,layernorm rmsnorm batchnorm,$(foreach p,forward backward,$(foreach d,f32 f16 bf16,$o.$p.$d)))
peer_kernels_onednn := $(norms)
peer_sources_onednn := onednn library
peer_library_onednn := lib/libdnnl.so.3
peer_kernels_onednn-omp := $(norms)
peer_sources_onednn-omp := $(peer_sources_onednn)
peer_library_onednn-omp := $(peer_library_onednn)
peer_kernels_onednn-3.2 := $(norms)
peer_sources_onednn-3.2 := $(peer_sources_onednn)
peer_library_onednn-3.2 := $(peer_library_onednn)
peer_kernels_pytorch := $(norms)
peer_sources_pytorch := pytorch
peer_library_pytorch := lib/libtorch_cpu.so
peer_link_pytorch := -L$(PEERS_DIR)/pytorch/lib -Wl,--no-as-needed -ltorch_cpu -lc10 -lstdc++ \
	-Wl,-rpath,$(PEERS_DIR)/pytorch/lib -Wl,--unresolved-symbols=ignore-in-shared-libs
peer_kernels_ggml := layernorm.forward.f32 rmsnorm.forward.f32 rmsnorm.backward.f32
peer_sources_ggml := ggml library
peer_library_ggml := lib/libggml-cpu.so

# Of OP.PASS.DTYPE the first, second, third word in the header's spelling; the symbol; the kernel's name.
upper_layernorm := LAYERNORM
upper_rmsnorm := RMSNORM
upper_batchnorm := BATCHNORM
upper_forward := FORWARD
upper_backward := BACKWARD
upper_f32 := F32
upper_f16 := F16
upper_bf16 := BF16
peer_word = $(upper_$(word $(2),$(subst ., ,$(1))))
peer_symbol = peer_$(subst .,_,$(1))
peer_name = $(word 1,$(subst ., ,$(1)))$(if $(findstring .backward,$(1)),_backward)

peer_headers := $(wildcard kernels/peers/*.h) kernels/kernel.h
define peer_rules
peer_objects_$(1) := $(foreach k,$(peer_kernels_$(1)),$(BUILD)/peers/$(1)/$(call peer_symbol,$k).o) \
  $(patsubst %,$(BUILD)/peers/$(1)/%.o,$(peer_sources_$(1)) table)
$(foreach k,$(peer_kernels_$(1)),$(call peer_variant_rule,$(1),$k))
$(BUILD)/peers/$(1)/table.o: kernels/peers/table.c $(peer_headers)
	@mkdir -p $$(dir $$@)
	$$(CC) $$(CFLAGS_ALL) -I. -DPEER_LIBRARY='"$(PEERS_DIR)/$(1)/$(peer_library_$(1))"' \
	  -DPEER_VARIANTS='$(foreach k,$(peer_kernels_$(1)),ENTRY($(call peer_symbol,$k)))' -c -o $$@ $$<
$(BUILD)/peers/$(1)/%.o: kernels/peers/%.c $(peer_headers)
	@mkdir -p $$(dir $$@)
	$$(call say,CC)
	$$(CC) $$(CFLAGS_ALL) -D_GNU_SOURCE -I. -isystem $(PEERS_DIR)/$(1)/include -c -o $$@ $$<
$(BUILD)/peers/$(1)/%.o: kernels/peers/%.cpp $(peer_headers)
	@mkdir -p $$(dir $$@)
	$$(call say,CXX)
	$$(CXX) -std=c++20 -O2 -fPIC -I. -isystem $(PEERS_DIR)/$(1)/include \
	  -isystem $(PEERS_DIR)/$(1)/include/torch/csrc/api/include -c -o $$@ $$<
$(BUILD)/peers/$(1).so: $$(peer_objects_$(1))
	$$(call say,LD)
	$$(CC) -shared -Wl,-Bsymbolic -Wl,-z,nodelete -Wl,-z,noexecstack -o $$@ $$^ $$(peer_link_$(1)) -ldl -lm
endef
define peer_variant_rule

$(BUILD)/peers/$(1)/$(call peer_symbol,$(2)).o: kernels/peers/variant.c $(peer_headers)
	@mkdir -p $$(dir $$@)
	$$(CC) $$(CFLAGS_ALL) -I. -DPEER_SYMBOL=$(call peer_symbol,$(2)) -DPEER_KERNEL='"$(call peer_name,$(2))"' \
	  -DPEER_OP=NB_OP_$(call peer_word,$(2),1) -DPEER_PASS=NB_$(call peer_word,$(2),2) \
	  -DPEER_DTYPE=NB_$(call peer_word,$(2),3) -c -o $$@ $$<
endef

ifneq ($(filter peers peer-adapters $(BUILD)/peers/%,$(MAKECMDGOALS)),)
$(foreach p,$(PEERS),$(eval $(call peer_rules,$p)))
endif

.PHONY: peers peer-adapters
peers:
	code=0; kernels/peers/get.sh $(PEERS_DIR) $(PEERS) || code=$$?; [ $$code != 2 ] || exit 2; \
	  $(MAKE) -f $(firstword $(MAKEFILE_LIST)) peer-adapters || code=$$?; exit $$code
	@$(foreach p,$(PEERS),[ -e $(BUILD)/peers/$p.so ] || { echo 'peers: $p: $(PEERS_DIR)/$p has no $(peer_library_$p); remove $(PEERS_DIR)/$p and try again' >&2; exit 1; };)
peer-adapters: $(foreach p,$(PEERS),$(if $(wildcard $(PEERS_DIR)/$p/$(peer_library_$p)),$(BUILD)/peers/$p.so))
