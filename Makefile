# SPDX-License-Identifier: Apache-2.0
# make demo: installs what is missing, builds, measures the quick preset on real rows, ends with the summary.
# make check: builds and passes the tests. `make help` lists the rest.

MAKEFLAGS += --no-builtin-rules --no-print-directory
# V=1 shows the commands.
ifndef V
.SILENT:
say = @printf '  %-6s %s\n' $(1) $@
endif
# All cores, unless the user says -j; a make below takes the jobs of the one above.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif
ifeq ($(origin CC),default)
CC := gcc
endif
BUILD ?= build
ARM ?= $(BUILD)/layouts# of the gate, below
PREFIX ?= /usr/local
ARCH := $(shell uname -m)
COMPILER := $(shell $(CC) --version 2>/dev/null | head -n 1)
IS_CLANG := $(if $(findstring clang,$(COMPILER)),1,0)

# Which kernels are built. Unless something is said: those that the usual commands select (`selections` below). VARIANTS=all: every kernel in the
# usual widths (scalar, 256 and 512; of the kernels that widths are compared with 128 and 256x too); WIDTHS=all: in every width. Fewer, for a
# quick loop: make WIDTHS="scalar 256" DTYPES=f32 KERNELS="rmsnorm_% copy%", or single ones by VARIANTS="rmsnorm_fast_v256_f32 copy%".
said := $(strip $(foreach v,WIDTHS DTYPES KERNELS VARIANTS,$(filter-out undefined default,$(origin $(v)))))
DTYPES ?= f32 f16 bf16
ifeq ($(ARCH),x86_64)
all_widths := scalar 128 256 256x 512
usual_widths := scalar 256 512
else ifeq ($(ARCH),aarch64)
all_widths := scalar 128 256
usual_widths := scalar 128
else
all_widths := scalar
usual_widths := scalar
endif
WIDTHS ?= usual
compares_widths := %_twopass %_fast copy% rmsnorm_composed layernorm_composed
KERNELS ?= %

# ---- flags ---------------------------------------------------------------------------------------------------------
WARNINGS := -Wall -Wextra -Wno-unused-parameter -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith \
	-Wwrite-strings -Werror=implicit-function-declaration
OPT ?= -O2
VERSION := $(file <VERSION)
# CI builds all of it with WERROR=-Werror.
flags_with = -std=gnu11 $(1) $(DEBUG) -fPIC -ffp-contract=off $(WARNINGS) $(WERROR) $(SANITIZE)
CFLAGS_ALL := $(call flags_with,$(OPT)) $(COVERAGE)
# More of the program's flags, from who packages it; CFLAGS and the like of the environment change nothing, and no such flag reaches a kernel.
PROGRAM_CFLAGS ?=
PROGRAM_LDFLAGS ?=
# Kernels: aligned entry and loops, so that code placement does not decide a comparison; relocations kept, so that two
# builds of a kernel can be compared as machine code.
ifeq ($(IS_CLANG),0)
ALIGN := -falign-functions=64 -falign-loops=64
else
ALIGN := -falign-functions=64 -mllvm -align-all-nofallthru-blocks=6
endif
# KERNEL_OPT=-O0 builds them in a fraction of the time, for what is not about speed.
KERNEL_OPT ?= $(OPT)
# PREFETCH=0 builds them without prefetches, for the gate to say what those are worth on a CPU (src/tune/README.md).
PREFETCH ?= 1
without_prefetch := $(if $(filter 0,$(PREFETCH)), -D'__builtin_prefetch(p,...)=((void)(p))')
# No debug information: it would make up most of their 50 MB; perf finds the symbols without it (DEBUG=-g adds it).
# Each function in a section of its own and no jump tables, so that every reference leaves a relocation (src/gate/code_identity.h).
kernel_flags_with = $(call flags_with,$(1)) $(ALIGN) -ffunction-sections -fno-jump-tables -fvisibility=hidden -fno-math-errno -fno-trapping-math$(without_prefetch)
KERNEL_CFLAGS := $(call kernel_flags_with,$(KERNEL_OPT))
ifeq ($(IS_CLANG),0)
NO_VECTORIZE := -fno-tree-vectorize -fno-tree-slp-vectorize
else
NO_VECTORIZE := -fno-vectorize -fno-slp-vectorize
endif
ifeq ($(ARCH),x86_64)
ISA_V3 := -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt
ISA_V4 := $(ISA_V3) -mavx512f -mavx512bw -mavx512vl -mavx512dq
endif
isa_scalar := $(ISA_V3) $(NO_VECTORIZE)
isa_128 := $(ISA_V3)
isa_256 := $(ISA_V3)
isa_256x := $(ISA_V4)
isa_512 := $(ISA_V4)
# The header of simd/ is named as the width but on aarch64, which has other ones.
ifeq ($(ARCH),aarch64)
isa_256 := -march=armv8.2-a+sve -msve-vector-bits=256
simd_128 := neon128
simd_256 := sve256
endif
suffix_scalar := scalar
suffix_128 := v128
suffix_256 := v256
suffix_256x := v256x
suffix_512 := v512
type_f32 := F32
type_f16 := F16
type_bf16 := BF16

pkg = $(shell pkg-config $(1) $(2) 2>/dev/null)
library = $(or $(call pkg,--libs,$(1)),$(2))
# CPUID is x86's, and the gate compares machine code there alone (src/gate/code_identity.c).
x86_libraries = $(if $(filter x86_64,$(ARCH)),$(call library,libcpuid,-lcpuid) $(call library,zydis,-lZydis) $(call library,libelf,-lelf))
# Asked for when the first recipe needs them, since a make that has nothing to do has no time for them.
LIB_CFLAGS = $(eval LIB_CFLAGS := $(if $(filter x86_64,$(ARCH)),$$(call pkg,--cflags,libcpuid)) $$(call pkg,--cflags,libcjson))$(LIB_CFLAGS)
LIBS = $(eval LIBS := $$(call library,libcjson,-lcjson) -lpapi -ldl -lm -lpthread $$(x86_libraries))$(LIBS)
INCLUDES := -I. -I$(BUILD)/gen -D_GNU_SOURCE -DNB_VERSION='"$(VERSION)"' 

# ---- sources, all by sorted wildcard --------------------------------------------------------------------------------
# Older trees, whose kernels the gate builds with this file, have them in kernels/ itself.
kernel_sources := $(filter-out kernels/table.c kernels/operations% kernels/peers/% kernels/cuda/%,$(sort $(wildcard kernels/*.c kernels/*/*.c)))
kernels := $(filter $(KERNELS),$(sort $(basename $(notdir $(kernel_sources)))))
widths_given = $(if $(filter usual,$(WIDTHS)),$(if $(filter $(compares_widths),$(1)),$(all_widths),$(usual_widths)),$(WIDTHS:all=$(all_widths)))
# A copy by the CPU's own instruction is the same at every width.
widths_of = $(if $(filter copy_string,$(1)),$(firstword $(call widths_given,$(1))),$(call widths_given,$(1)))
# Statistics in the dtype of x are f32 statistics when the dtype is f32.
dtypes_of = $(if $(filter %_lowp,$(1)),$(filter-out f32,$(DTYPES)),$(DTYPES))
variants := $(foreach k,$(kernels),$(foreach w,$(call widths_of,$(k)),$(foreach d,$(call dtypes_of,$(k)),$(k)_$(suffix_$(w))_$(d))))
ifdef VARIANTS
variants := $(filter $(VARIANTS:all=%),$(variants))
endif
# Beside composed kernels lie the operations that those of a width and dtype share (older trees have none).
operations_of = $(if $(wildcard kernels/operations.c),$(foreach w,$(all_widths),$(foreach d,$(DTYPES),$(foreach o,composed composed_lowp,\
	$(if $(filter %_$(o)_$(suffix_$(w))_$(d),$(1)),$(o:composed%=operations%)_$(suffix_$(w))_$(d))))))
objects_of = $(patsubst %,$(BUILD)/kernels/%.o,$(1) $(call operations_of,$(1)))
kernel_objects := $(call objects_of,$(variants))
src_objects := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard src/*/*.c src/*/*/*.c)))
report_objects := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard reports/*/*.c)))
cmd_objects := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard cmd/*.c cmd/shared/*.c)))
test_objects := $(patsubst %.c,$(BUILD)/%.o,$(sort $(filter-out %/played_caches.c,$(wildcard tests/*/test_*.c tests/support/*.c))))
# A command is any file of cmd/ but main; what several share is in cmd/shared/. A renderer is reports/*/render_*.c.
commands := $(filter-out main,$(basename $(notdir $(sort $(wildcard cmd/*.c)))))
renderers := $(patsubst render_%,%,$(basename $(notdir $(sort $(wildcard reports/*/render_*.c)))))
plots := $(patsubst plot_%,%,$(basename $(notdir $(sort $(wildcard reports/figures/plot_*.c)))))
# A job is done in a worker process by src/.../NAME_job.c.
jobs := $(patsubst %_job,%,$(basename $(notdir $(sort $(wildcard src/*/*_job.c src/*/*/*_job.c)))))
# A property experiment of the claims is any src/claims/property_NAME.c.
properties := $(patsubst property_%,%,$(basename $(notdir $(sort $(wildcard src/claims/property_*.c)))))
plugin_sources := $(sort $(wildcard tests/plugins/*.c))
misdeeds := $(patsubst %,$(BUILD)/tests/plugins/%.so,crash error hang late_crash nan question wrong)
plugins := $(patsubst tests/plugins/%.c,$(BUILD)/tests/plugins/%.so,$(plugin_sources)) $(misdeeds) $(BUILD)/tests/programs/norms

.PHONY: cuda-emulated survey all help deps demo check check-unit check-unit-build check-kernels check-cli check-style check-conditions check-long check-browser check-exports check-slurm check-arm check-avx512 \
	gate gate-layouts gate-texts format format-check lint asan asan-build fuzz fuzz-build install install-built wheel deb check-deb uninstall clean
all: $(BUILD)/normbench $(BUILD)/libnormkernels.so

help:
	@printf '%s\n' \
	'make           builds build/normbench, and build/libnormkernels.so with the kernels that its usual commands select; VARIANTS=all: all' \
	'make demo      installs what is missing, builds, measures the quick preset, ends with the summary' \
	'make check     installs what is missing, builds, passes the tests on the kernels that they need, within minutes' \
	'make check-kernels  the tests of kernels on all that make builds: 16 bits and 512 bits too' \
	'make check-long  what is long and rarely fails: every variant, every planted mistake, the GPU run rehearsed, the pages in a browser; minutes' \
	'make gate BASE=origin/main  is a kernel of this tree slower than that of a git ref? (GATE="--budget 60": more options)' \
	'make check-browser  opens the pages in a headless Chromium (installs chromium-headless-shell), with screenshots in build/browser' \
	'make check-slurm  a job array on a Slurm of its own, from Debian packages in build/slurm; nothing is installed' \
	'make check-arm  builds for aarch64 and runs the unit tests, stress and probe emulated by qemu-user (gets these from Debian); half an hour' \
	'make check-avx512  the tests of kernels on those of 512 bits, on any CPU with AVX2: their instructions in C; 5 minutes' \
	'make check-exports  hands each export to the program that it is made for (installs those)' \
	'make deps      installs the Debian packages that are missing' \
	'make peers     PEERS="onednn-omp ggml": gets these libraries into peers/ and builds the adapters to them' \
	'make survey    LIBS="jax onnxruntime": gets these libraries from PyPI, each into an environment in peers/survey/, and grades their norms' \
	'make cuda-emulated  the GPU kernels (kernels/cuda/) on the CPU, to see that they are right; needs no CUDA' \
	'make cuda      the same for NVIDIA GPUs, with the nvcc of CUDA_HOME or on PATH; make cuda-compiler gets one' \
	'make cuda-bundle  a folder to carry to a machine with a GPU, and the command that runs everything there (cmd/guide/gpu.md)' \
	'make deb       a Debian package, into build/deb; make check-deb installs, uses and purges it in a root of its own' \
	'make wheel     the Python package with the program in it, into build/wheel/dist; its tools come from PyPI' \
	'make asan      the tests under AddressSanitizer and UndefinedBehaviorSanitizer' \
	'make fuzz      feeds every reader of foreign text with clang and libFuzzer, FUZZ_SECONDS=30 each (TARGETS="npy journal": these)' \
	'make format    formats the sources; format-check only looks' \
	'make lint      static analysis' \
	'make install   PREFIX=/usr/local: program, kernels, the adapters to peers that are built, headers, configs, guide, manual pages, completions; make uninstall' \
	'make clean     removes build/' \
	'' \
	'BUILD=DIR CC=gcc|clang WIDTHS="scalar 256" DTYPES=f32 KERNELS="rmsnorm_% copy%" WERROR=-Werror'

# ---- generated files: written while make reads this one, and only when their content changes, so that a change of flags, or a file
# that was added or deleted, is noticed, and a make that has nothing to do starts no process for it -----------------------
define newline


endef
entries = $(subst $(newline) ,$(newline),$(foreach entry,$(2),$(1)($(entry))$(newline)))
is_same = $(and $(findstring x$(strip $(1))x,x$(strip $(2))x),$(findstring x$(strip $(2))x,x$(strip $(1))x))
only_says := $(findstring n,$(filter-out -%,$(firstword $(MAKEFLAGS))))# make -n
keep = $(if $(wildcard $(dir $(1))),,$(shell mkdir -p $(dir $(1))))$(if $(or $(call is_same,$(file <$(1)),$(2)),$(and $(only_says),$(wildcard $(1)))),,$(file >$(1),$(2)))
commit := $(shell git rev-parse --short=12 HEAD 2>/dev/null)
dirty := $(shell git status --porcelain --untracked-files=no 2>/dev/null | head -n 1)
define build_info
#define NB_COMMIT "$(commit)"
#define NB_DIRTY $(if $(dirty),1,0)
#define NB_COMPILER "$(subst ",,$(COMPILER))"
#define NB_KERNEL_FLAGS "$(strip $(KERNEL_CFLAGS))"
endef
# The kernels of a library; those of the gate's layouts may be fewer, and have a list of their own.
kernel_list := $(if $(filter gate-layouts,$(MAKECMDGOALS)),$(ARM),$(BUILD))/gen/kernel_list.h
ifneq ($(filter-out help deps clean format format-check lint install-built deb check-deb uninstall,$(or $(MAKECMDGOALS),all)),)
$(if $(said)$(filter gate-layouts,$(MAKECMDGOALS)),$(call keep,$(kernel_list),$(call entries,NB_KERNEL_ENTRY,$(variants))))
$(call keep,$(BUILD)/gen/command_list.h,$(call entries,NB_COMMAND_ENTRY,$(commands)))
$(call keep,$(BUILD)/gen/renderer_list.h,$(call entries,NB_RENDERER_ENTRY,$(renderers)))
$(call keep,$(BUILD)/gen/plot_list.h,$(call entries,NB_PLOT_ENTRY,$(plots)))
$(call keep,$(BUILD)/gen/job_list.h,$(call entries,NB_JOB_ENTRY,$(jobs)))
$(call keep,$(BUILD)/gen/property_list.h,$(call entries,NB_PROPERTY_ENTRY,$(properties)))
$(call keep,$(BUILD)/gen/build_info.h,$(build_info))
$(call keep,$(BUILD)/kernels/flags,$(CC) $(KERNEL_CFLAGS))
$(call keep,$(BUILD)/gen/kernel_sources,$(kernel_sources))
$(call keep,$(BUILD)/flags,$(CC) $(CFLAGS_ALL) $(PROGRAM_CFLAGS))
endif
# Which kernels there are, built or not, by what their files say.
$(BUILD)/gen/kernel_catalogue.stamp: $(kernel_sources) cmd/kernel_catalogue.awk $(BUILD)/gen/kernel_sources
	awk -f cmd/kernel_catalogue.awk $(kernel_sources) >$@
	cmp -s $@ $(@:.stamp=.h) || cp $@ $(@:.stamp=.h)
$(BUILD)/gen/kernel_catalogue.h: $(BUILD)/gen/kernel_catalogue.stamp ;

# What `normbench new-plugin` writes, and the style and script of our pages, as texts.
as_text = printf 'static const char nb_%s[] =\n' $(1) && sed 's/\\/&&/g; s/"/\\&/g; s/.*/    "&\\n"/; $$s/$$/;/' $(2)
$(BUILD)/gen/examples.h: tests/plugins/example.c tests/plugins/example.cpp tests/plugins/example.py kernels/kernel.h Makefile
	{ $(foreach e,c cpp py,$(call as_text,example_$(e),tests/plugins/example.$(e));) $(call as_text,example_header,kernels/kernel.h); } >$@
# A page's policy names its script by the base64 of a hash.
$(BUILD)/gen/page.h: reports/text/page.css reports/text/page.js Makefile
	{ $(call as_text,page_style,reports/text/page.css); $(call as_text,page_script,reports/text/page.js); \
	  printf '#define NB_PAGE_SCRIPT_HASH "%s"\n' "$$(printf '%b' "$$(sha256sum reports/text/page.js | \
	    awk '{ digits = "0123456789abcdef"; for (i = 1; i < 64; i += 2) printf "\\0%03o", \
	    16 * index(digits, substr($$1, i, 1)) + index(digits, substr($$1, i + 1, 1)) - 17 }')" | base64)"; } >$@

# ---- kernels: one object for each (kernel, width, dtype) ------------------------------------------------------------
PCH ?= $(BUILD)/pch# the gate builds both trees with this one's
vpath %.c $(sort $(dir $(kernel_sources))) kernels
# The intrinsics headers would be most of a small object's compile time, so GCC reads them precompiled, once for each set of flags.
define width_rules
ifeq ($(IS_CLANG),0)
$(BUILD)/pch/$(1).h.gch: kernels/simd/intrinsics.h $(BUILD)/kernels/flags
	@mkdir -p $$(dir $$@)
	@printf '#include "kernels/simd/intrinsics.h"\n#include <stdint.h>\n#include <string.h>\n#include <math.h>\n' > $(BUILD)/pch/$(1).h
	$$(call say,PCH)
	$$(CC) $$(KERNEL_CFLAGS) $$(isa_$(1)) -I. -x c-header -o $$@ $(BUILD)/pch/$(1).h
pch_$(1) := $(if $(filter x86_64,$(ARCH)),-include $(PCH)/$(1).h)
pch_file_$(1) := $(if $(filter x86_64,$(ARCH)),$(PCH)/$(1).h.gch)
endif
$(foreach d,$(DTYPES),$(call variant_rule,$(1),$(d)))
endef
variant_macros = -I. -DNB_SIMD_HEADER='"kernels/simd/$(or $(simd_$(1)),$(1)).h"' -DNB_VARIANT=$(suffix_$(1)) -DNB_DTYPE=NB_$(type_$(2)) \
	-DNB_DTYPE_NAME=$(2) -DNB_DTYPE_IS_$(type_$(2))
define variant_rule

$(BUILD)/kernels/%_$(suffix_$(1))_$(2).o: %.c $(BUILD)/kernels/flags $$(pch_file_$(1))
	$$(call say,CC)
	$$(CC) $$(KERNEL_CFLAGS) $$(isa_$(1)) $$(pch_$(1)) -MMD -MP $(variant_macros) -c -o $$@ $$<
# What the compiler reads, without intrinsics: a variant whose text is the same in two trees is not built for the gate.
$(ARM)/texts/%_$(suffix_$(1))_$(2).i: %.c $$(pch_file_$(1))
	@mkdir -p $$(dir $$@)
	$$(CC) $$(KERNEL_CFLAGS) $$(isa_$(1)) $$(pch_$(1)) -E -P -fpch-preprocess $(variant_macros) $$< | sed '/^#pragma GCC pch_preprocess/d' >$$@
endef
$(foreach w,$(all_widths),$(eval $(call width_rules,$(w))))

$(BUILD)/kernels/table.o: kernels/table.c $(kernel_list) $(BUILD)/kernels/flags
	$(call say,CC)
	$(CC) $(KERNEL_CFLAGS) -I. -I$(dir $(kernel_list)) -MMD -MP -c -o $@ $<
# Two builds must live in one process without sharing a symbol: hidden visibility, -Bsymbolic, loaded with RTLD_LOCAL.
ifneq ($(said),)
$(BUILD)/libnormkernels.so: $(BUILD)/kernels/table.o $(kernel_objects)
	$(file >$@.objects,$(sort $(filter %.o,$^)))
	$(call say,LD)
	$(CC) $(SANITIZE) -shared -Wl,-Bsymbolic -Wl,--emit-relocs -Wl,--discard-none -Wl,-z,noexecstack -o $@ @$@.objects -lm
else
# The program says which kernels its commands select (on this CPU), and a second make builds them.
selections := "run quick" "run quick --axis dtype=bf16" "run stress --axis kernel=rmsnorm_*" claims
$(BUILD)/gen/selected: $(BUILD)/normbench Makefile $(wildcard configs/*.json configs/claims/*.json configs/models/*.json)
	for command in $(selections); do $(BUILD)/normbench $$command --list --format variants || exit 1; done >$@.new
	printf '%s\n' $(test_variants) >>$@.new
	LC_ALL=C sort -u $@.new >$@
$(BUILD)/libnormkernels.so: $(BUILD)/gen/selected ALWAYS
	$(MAKE) VARIANTS="$$(cat $<)" $@
ALWAYS: ;
endif

# ---- program --------------------------------------------------------------------------------------------------------
gen_headers := $(patsubst %,$(BUILD)/gen/%.h,command_list renderer_list plot_list job_list property_list build_info kernel_catalogue examples page)
$(BUILD)/%.o: %.c $(BUILD)/flags | $(gen_headers)
	@mkdir -p $(dir $@)
	$(call say,CC)
	$(CC) $(CFLAGS_ALL) $(PROGRAM_CFLAGS) $(INCLUDES) $(LIB_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/normbench: $(src_objects) $(report_objects) $(cmd_objects)
	$(call say,LD)
	$(CC) $(SANITIZE) $(PROGRAM_LDFLAGS) -o $@ $^ $(LIBS)

# The same, of which a played clock takes the place of the system's: what tests run (tests/support/played_time.h).
$(BUILD)/normbench-played: $(filter-out $(BUILD)/src/core/timer.o,$(src_objects)) $(report_objects) $(cmd_objects) $(patsubst %,$(BUILD)/tests/support/played_%.o,time caches)
	$(call say,LD)
	$(CC) $(SANITIZE) $(PROGRAM_LDFLAGS) -Wl,--wrap=nb_cpu_light -o $@ $^ $(LIBS)

# ---- peers: other libraries to compare with (kernels/peers/README.md) ---------------------------------------------------
include kernels/peers/rules.mk

# The norms of libraries that Python loads (kernels/peers/survey/README.md). SURVEY=--time: their times too.
survey: all
	@[ -n "$(LIBS)" ] || { echo 'make survey LIBS="jax onnxruntime": which libraries (kernels/peers/survey/norms_*.py, or peers that are built)?' >&2; exit 2; }
	status=0; python3 kernels/peers/survey/survey.py $(SURVEY) --program $(BUILD)/normbench --environments $(PEERS_DIR)/survey $(LIBS) || status=$$?; \
	    python3 kernels/peers/survey/page.py reports/published/survey && exit $$status

# ---- GPUs, and their kernels emulated on the CPU (kernels/cuda/README.md) ------------------------------------------------
TEST_KERNELS ?= $(BUILD)/tests/kernels/libnormkernels.so# go with what is carried to a GPU, too
include kernels/cuda/rules.mk

# ---- tests ----------------------------------------------------------------------------------------------------------
# A test file that includes a .c file can call its file-local functions; the file's own object is then left out.
included_in_tests := $(patsubst %.c,$(BUILD)/%.o,$(shell grep -sho 'include "[a-z]*/[a-z0-9_/]*[.]c"' tests/*/test_*.c | cut -d'"' -f2))
$(BUILD)/tests/normbench-tests: $(test_objects) $(filter-out $(included_in_tests),$(src_objects) $(report_objects))
	$(call say,LD)
	$(CC) $(SANITIZE) -o $@ $^ $(LIBS) -lcriterion -lmpfr -lgmp
$(BUILD)/tests/plugins/%.so: tests/plugins/%.c kernels/kernel.h $(wildcard tests/plugins/*.h) $(BUILD)/flags
	@mkdir -p $(dir $@)
	$(call say,CC)
	$(CC) -std=gnu11 -O1 -fPIC -shared $(WARNINGS) $(WERROR) -I. -Ikernels -o $@ $< -lm
# What it does wrong is its name.
$(misdeeds): $(BUILD)/tests/plugins/hostile.so
	cp $< $@

# Kernels that stay in a process of their own: nothing of ours but the protocol.
$(BUILD)/tests/programs/%: tests/programs/%.c $(BUILD)/flags
	@mkdir -p $(dir $@)
	$(call say,CC)
	$(CC) -std=gnu11 -O1 $(WARNINGS) $(WERROR) -o $@ $< -lm

# Files whose machine code is compared, one for each change (tests/identity/kernels.c), two that only lie otherwise in memory, one
# without relocations, one without symbols.
identity_sources := $(sort $(wildcard tests/identity/*.c))
identities := $(patsubst %,$(BUILD)/tests/plugins/identity_%.so,same constant inside table pointers target jump callee deep \
	library chain text flags chosen repeats other moved constructor libraries unmarked bare stripped)
identity_order_moved := filler table helpers kernels
identity_link := -Wl,--emit-relocs
$(BUILD)/tests/plugins/identity_libraries.so: identity_link += -Wl,-rpath,/nonexistent
$(BUILD)/tests/plugins/identity_bare.so: identity_link :=
$(BUILD)/tests/plugins/identity_stripped.so: identity_link := -Wl,--strip-all
$(identities): $(BUILD)/tests/plugins/identity_%.so: $(identity_sources) tests/identity/identity.h kernels/kernel.h \
	$(BUILD)/kernels/flags
	@mkdir -p $(BUILD)/tests/identity/$* $(dir $@)
	$(call say,CC)
	for f in $(basename $(notdir $(identity_sources))); do \
	  $(CC) $(filter-out $(SANITIZE),$(call kernel_flags_with,-O2)) $(isa_256) -DCHANGED_$* -DCHANGE='"$*"' -I. -c -o $(BUILD)/tests/identity/$*/$$f.o \
	    tests/identity/$$f.c || exit 1; done
	$(CC) -shared -Wl,-Bsymbolic $(identity_link) -o $@ \
	  $(patsubst %,$(BUILD)/tests/identity/$*/%.o,$(or $(identity_order_$*),helpers kernels table)) -lm

# ---- the gate between a git ref and this tree (cmd/gate.sh) -----------------------------------------------------------
# A layout is what an edit elsewhere does to a kernel: another address, other neighbours. The same objects are linked in another
# order, with gaps between them, into ARM; cmd/gate.sh runs this for the sources of either side with the flags of this file.
BASE ?= HEAD
LAYOUTS ?= 6
LAYOUT_SEED ?= 0
tools := $(patsubst %/,%,$(dir $(abspath $(firstword $(MAKEFILE_LIST)))))/cmd
layouts := $(patsubst %,$(ARM)/layout_%.so,$(shell seq $(LAYOUTS)))
gap_lines := 1 2 5 11 23 29 47 61
gaps := $(patsubst %,$(ARM)/gap_%.o,1 2 3 4 5 6 7 8)
gate:
	+BUILD=$(BUILD) LAYOUTS=$(LAYOUTS) KERNELS="$(KERNELS)" WIDTHS="$(filter-out usual,$(WIDTHS:all=$(all_widths)))" MAKE="$(MAKE)" cmd/gate.sh $(if $(MOST),--most $(MOST)) $(BASE) $(GATE)
gate-layouts: $(layouts)
gate-texts: $(variants:%=$(ARM)/texts/%.i)
$(ARM)/table.o: kernels/table.c $(kernel_list) $(BUILD)/kernels/flags
	@mkdir -p $(dir $@)
	$(CC) $(KERNEL_CFLAGS) -I. -I$(dir $(kernel_list)) -c -o $@ $<
$(gaps): $(ARM)/gap_%.o: $(BUILD)/kernels/flags
	@mkdir -p $(dir $@)
	printf '.text\n.balign 64\n.skip 64 * %d\n.section .rodata\n.skip 32 * %d\n.section .note.GNU-stack,"",@progbits\n' \
	  $(word $*,$(gap_lines)) $* | $(CC) -c -x assembler -o $@ -
$(layouts): $(ARM)/layout_%.so: $(ARM)/table.o $(kernel_objects) $(gaps) $(tools)/layout.awk
	$(file >$@.objects,$(sort $(ARM)/table.o $(kernel_objects)))
	$(call say,LAYOUT)
	tr ' ' '\n' <$@.objects | awk -v layout=$* -v seed=$(LAYOUT_SEED) -v gaps=$(ARM) -f $(tools)/layout.awk >$@.order
	$(CC) $(SANITIZE) -shared -Wl,-Bsymbolic -Wl,--emit-relocs -Wl,-z,noexecstack -o $@ @$@.order -lm

# ---- checks -----------------------------------------------------------------------------------------------------------
# Kernels to test on: f32 in two widths, 16 bits and a third width of those that some test names.
test_widths := $(or $(filter scalar 256,$(WIDTHS)),$(if $(filter x86_64,$(ARCH)),scalar 256,$(all_widths)))
third_width := $(if $(filter x86_64,$(ARCH)),$(if $(filter 256,$(test_widths)),v128))
tested_in_halves := rmsnorm_twopass rmsnorm_serial rmsnorm_fast %_lowp layernorm_twopass layernorm_welford layernorm_corrected \
	layernorm_onepass layernorm_fast add_rmsnorm_twopass l2norm_twopass batchnorm_twopass rmsnorm_backward_plain layernorm_backward_plain copy%
tested_in_widths := rmsnorm_twopass layernorm_twopass copy%
test_dtypes_of = $(if $(filter %_lowp,$(1)),,f32) $(if $(filter $(tested_in_halves),$(1)),f16 bf16)
test_variants := $(foreach k,$(kernels),$(foreach w,$(test_widths),$(foreach d,$(filter $(DTYPES),$(call test_dtypes_of,$(k))),$(k)_$(suffix_$(w))_$(d)))) \
	$(if $(third_width),$(foreach k,$(filter $(tested_in_widths),$(kernels)),$(k)_$(third_width)_f32))
test_objects_of_kernels := $(call objects_of,$(test_variants))
$(BUILD)/tests/kernels/kernel_list.h: Makefile $(sort $(dir $(kernel_sources)))
	@mkdir -p $(dir $@)
	printf 'NB_KERNEL_ENTRY(%s)\n' $(test_variants) >$@
$(BUILD)/tests/kernels/table.o: kernels/table.c $(BUILD)/tests/kernels/kernel_list.h $(BUILD)/kernels/flags
	$(call say,CC)
	$(CC) $(KERNEL_CFLAGS) -I. -I$(dir $@) -c -o $@ $<
$(BUILD)/tests/kernels/libnormkernels.so: $(BUILD)/tests/kernels/table.o $(test_objects_of_kernels)
	$(file >$@.objects,$(sort $^))
	$(call say,LD)
	$(CC) $(SANITIZE) -shared -Wl,-Bsymbolic -Wl,--emit-relocs -Wl,--discard-none -Wl,-z,noexecstack -o $@ @$@.objects -lm
$(BUILD)/tests/kernels/layout_2.so: $(BUILD)/tests/kernels/table.o $(test_objects_of_kernels) $(gaps) $(tools)/layout.awk
	$(call say,LAYOUT)
	printf '%s\n' $(filter-out $(gaps),$(filter %.o,$^)) | awk -v layout=2 -v seed=0 -v gaps=$(ARM) -f $(tools)/layout.awk >$@.order
	$(CC) $(SANITIZE) -shared -Wl,-Bsymbolic -Wl,--emit-relocs -Wl,-z,noexecstack -o $@ @$@.order -lm

# TESTS: a glob over suite/test; TEST_KERNELS, TEST_LAYOUT: the kernels that the tests run on, and the same in another layout; SCRIPTS: those that
# are run, by name, or "long" (make check-long).
TEST_LAYOUT ?= $(BUILD)/tests/kernels/layout_2.so
SCRIPTS ?=
check: deps
	rm -f $(BUILD)/tests/took.*
	$(MAKE) check-unit check-cli check-style
	tests/took.sh $(BUILD)/tests/took.*
check-unit-build: $(BUILD)/tests/normbench-tests $(BUILD)/normbench $(BUILD)/normbench-played $(TEST_KERNELS) $(TEST_LAYOUT) $(plugins) $(if $(filter x86_64,$(ARCH)),$(identities))
unit_tests = TOOK=$(BUILD)/tests/took.unit NORMBENCH_TEST_LAYOUT=$(TEST_LAYOUT) NORMBENCH_KERNELS=$(TEST_KERNELS) NORMBENCH_DATA=tests/data \
	NORMBENCH_CONFIGS=configs NORMBENCH_TEST_PLUGINS=$(BUILD)/tests/plugins tests/unit.sh $(BUILD)/tests/normbench-tests --timeout 900
check-unit: check-unit-build
	$(unit_tests) -j$(shell nproc) $(if $(TESTS),--filter '$(TESTS)')
check-cli: $(BUILD)/normbench $(BUILD)/normbench-played $(TEST_KERNELS) $(plugins)
	BUILD=$(BUILD) TOOK=$(BUILD)/tests/took.cli NORMBENCH_KERNELS=$(abspath $(TEST_KERNELS)) tests/cli/run.sh $(SCRIPTS)
# Nothing may depend on a core of one's own, or on time: everything, on one CPU that others keep busy, and stopped again and again.
check-conditions: check-unit-build
	for condition in crowded stopped; do tests/$$condition.sh $(MAKE) check-unit check-cli || exit 1; done
# The tests of kernels on those that `make` builds: 512 bits and 16 bits too.
check-kernels: $(BUILD)/libnormkernels.so
	$(MAKE) TEST_KERNELS=$< TEST_LAYOUT= TESTS='@($(kernel_suites))/*' check-unit
check-style:
	tests/style.sh
# The pages in a headless Chromium, which Debian has: installed when it is missing. Skipped with the reason where there is none to be had.
check-browser: $(BUILD)/normbench $(TEST_KERNELS)
	-tests/deps.sh chromium-headless-shell
	BUILD=$(BUILD) NORMBENCH_KERNELS=$(abspath $(TEST_KERNELS)) tests/browser/run.sh || [ $$? = 77 ]
# For aarch64, emulated: a cross compiler and qemu-user from Debian, and its arm64 libraries in build-arm/root. Skipped with the reason where they
# cannot be had.
arm_packages = $(filter-out libcpuid-dev libzydis-dev libelf-dev,$(filter lib%,$(DEBIAN_PACKAGES)))
check-arm:
	-tests/deps.sh gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static pkg-config
	BUILD=build-arm PACKAGES="libc6-dev $(arm_packages)" TESTS='$(TESTS)' tests/arm/run.sh || [ $$? = 77 ]
# The kernels of 512 bits on a CPU without AVX-512: tests/support/avx512.h has its instructions in C. Only the kernels': whatever else the
# program of that build does with AVX-512 (tune, probe, counters) is not for such a CPU.
in_c_names := build-avx512/avx512_names.h
in_c := BUILD=build-avx512 WIDTHS=512 ISA_V4="$(ISA_V3) -include tests/support/avx512.h -include $(in_c_names) -Wno-psabi -Wno-maybe-uninitialized" KERNEL_OPT=-O1 \
	PROGRAM_CFLAGS="-DNB_CPU_IN_C='(NB_CPU_AVX512|NB_CPU_AVX512BF16)'" TEST_KERNELS=build-avx512/libnormkernels.so TEST_LAYOUT=
$(in_c_names): tests/support/avx512.h
	@mkdir -p $(@D)
	sed -nE 's/^IN_C\([^,]*, ([a-z0-9_]+),.*/#define _mm512_\1 mm512_\1/p' $< >$@
check-avx512: deps $(in_c_names)
	$(MAKE) $(in_c) TESTS='$(or $(TESTS),@($(kernel_suites))/*)' check-unit
# Each export read by what it is made for, from Debian.
check-exports: $(BUILD)/normbench $(TEST_KERNELS) $(plugins)
	tests/deps.sh python3-pandas python3-junitparser cmark-gfm
	$(MAKE) SCRIPTS=exports check-cli
check-slurm: $(BUILD)/normbench $(TEST_KERNELS)
	BUILD=$(BUILD) NORMBENCH_KERNELS=$(abspath $(TEST_KERNELS)) tests/slurm/check.sh || [ $$? = 77 ]
# What is long and rarely fails (src/decisions/0002-check-long.md): run before a release, and after a change of what it looks at.
check-long: deps
	$(MAKE) VARIANTS=all all
	$(MAKE) TEST_KERNELS=$(BUILD)/libnormkernels.so TEST_LAYOUT= TESTS='@($(kernel_suites)|accuracy|oracle|bound|gradient*)/*' NORMBENCH_TEST_ALL=1 check-unit
	$(MAKE) SCRIPTS=long TEST_KERNELS=$(BUILD)/libnormkernels.so check-cli
	$(MAKE) check-conditions
	$(MAKE) check-browser
	$(MAKE) asan-build
	$(MAKE) $(sanitized) cuda-emulated
	BUILD=build-asan tests/cuda/sanitized.sh

# ---- set-up ---------------------------------------------------------------------------------------------------------
DEBIAN_PACKAGES := gcc pkg-config libcpuid-dev libpapi-dev libcjson-dev libcriterion-dev libmpfr-dev libgmp-dev \
	libopenblas0-pthread gnuplot-nox python3-jsonschema python3-numpy $(if $(filter x86_64,$(ARCH)),libzydis-dev libelf-dev)
deps:
	@BUILD=$(BUILD) tests/deps.sh $(DEBIAN_PACKAGES)
# Builds of the kernels those that the preset needs; a later make adds the others.
demo: deps
	$(MAKE) $(BUILD)/normbench
	$(MAKE) $(BUILD)/libnormkernels.so VARIANTS="$$($(BUILD)/normbench run quick --list --format variants)"
	$(BUILD)/normbench run quick

formatted = $(wildcard cmd/*.[ch] cmd/*/*.[ch] src/*/*.[ch] src/*/*/*.[ch] kernels/*.[ch] kernels/*/*.[ch] kernels/peers/*.cpp kernels/cuda/*.cpp kernels/cuda/*.cu tests/foreign/*.?pp tests/plugins/*.cpp reports/*/*.[ch] tests/*.[ch] tests/*/*.[ch])
format:
	clang-format -i $(formatted)
format-check:
	clang-format --dry-run --Werror $(formatted)
# cppcheck does not read the system's headers: it is told what cJSON's loop is.
lint:
	cppcheck --quiet -j$(shell nproc) --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -I. \
	  --suppress=missingIncludeSystem --include=tests/cppcheck.h src cmd reports
# What a sanitizer adds: memory and undefined operations where foreign bytes are read, where buffers are handed out, and in the source that all
# variants of a kernel share, one width of them. All of it is built without optimization, which takes a third of the time, once for the tests and
# for fuzzing, which looks at what its inputs reach. gcc's name for what is on is given to clang, which has none of its own.
sanitized := BUILD=build-asan CC=clang CXX=clang++ SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=undefined -D__SANITIZE_ADDRESS__=1" OPT=-O0 KERNEL_OPT=-O0 \
	WIDTHS=256 DTYPES="f32 bf16" COVERAGE=-fsanitize=fuzzer-no-link
kernel_suites := kernels|circumstances|fast_rows|every_float
# What reads foreign bytes or hands out memory; on the kernels as gcc builds them, since its tests name some of several widths.
sanitized_suites := json|params|case|key|shape|strings|registry|kernel_program|guard|files|config|plan|groups|npy|inputs|answers|lines|journal*|buffers|labels|results*|record|merge|comparison|fingerprint|claims_files|claims_log|claims_rules|tuning|code_identity|gate|gate_function|tolerance|design|formats|schema|models_study
asan-build:
	tests/deps.sh clang libclang-rt-14-dev
	$(MAKE) $(sanitized) check-unit-build
asan: asan-build $(TEST_KERNELS) $(TEST_LAYOUT)
	$(MAKE) $(sanitized) TEST_KERNELS=$(TEST_KERNELS) TEST_LAYOUT=$(TEST_LAYOUT) TESTS='@($(sanitized_suites))/*' check-unit
	$(MAKE) $(sanitized) TESTS='@($(kernel_suites))/*' check-unit

# ---- fuzzing: the targets of tests/fuzz/fuzz.c, with seeds in tests/fuzz/corpus/NAME/ ---------------------------------
FUZZ_SECONDS ?= 30
fuzz_objects := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard tests/fuzz/*.c)))
included_in_fuzz := $(patsubst %.c,$(BUILD)/%.o,$(shell grep -sho 'include "src/[a-z0-9_/]*[.]c"' tests/fuzz/*.c | cut -d'"' -f2))
fuzz: fuzz-build
	BUILD=build-asan FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run.sh $(TARGETS)
fuzz-build:
	tests/deps.sh clang libclang-rt-14-dev $(DEBIAN_PACKAGES)
	$(MAKE) $(sanitized) build-asan/tests/fuzz/normbench-fuzz
$(BUILD)/tests/fuzz/normbench-fuzz: $(fuzz_objects) $(filter-out $(included_in_fuzz),$(src_objects)) $(report_objects)
	$(call say,LD)
	$(CC) $(SANITIZE) -fsanitize=fuzzer -o $@ $^ $(LIBS)

# ---- install --------------------------------------------------------------------------------------------------------
install:
	$(MAKE) VARIANTS=all all
	$(MAKE) install-built
# What is built, as it is; KERNEL_LIBRARY: another library of our kernels.
KERNEL_LIBRARY ?= $(BUILD)/libnormkernels.so
install-built:
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib/normbench$(and $(wildcard $(BUILD)/peers/*.so),/peers) include/normbench share/pkgconfig \
	  $(addprefix share/normbench/,configs/claims/tables configs/models/readings data schema python/normbench/models kernels/peers/wheels))
	install -m 755 $(BUILD)/normbench $(DESTDIR)$(PREFIX)/bin/
	install -m 644 $(KERNEL_LIBRARY) $(DESTDIR)$(PREFIX)/lib/normbench/libnormkernels.so
	for backend in $(wildcard $(BUILD)/libnormkernels_cuda*.so); do \
	  install -m 644 $$backend $(DESTDIR)$(PREFIX)/lib/normbench/ || exit 1; done
	install -m 644 kernels/kernel.h kernels/function.h $(DESTDIR)$(PREFIX)/include/normbench/
	for adapter in $(wildcard $(BUILD)/peers/*.so); do \
	  install -m 644 $$adapter $(DESTDIR)$(PREFIX)/lib/normbench/peers/ || exit 1; done
	install -m 644 configs/*.json $(DESTDIR)$(PREFIX)/share/normbench/configs/
	install -d $(DESTDIR)$(PREFIX)/share/normbench/configs/ci && install -m 644 configs/ci/* $(DESTDIR)$(PREFIX)/share/normbench/configs/ci/
	install -d $(DESTDIR)$(PREFIX)/share/normbench/configs/slurm && install -m 755 configs/slurm/*.sh $(DESTDIR)$(PREFIX)/share/normbench/configs/slurm/
	install -m 644 configs/claims/*.json $(DESTDIR)$(PREFIX)/share/normbench/configs/claims/
	install -m 644 configs/claims/tables/*.json $(DESTDIR)$(PREFIX)/share/normbench/configs/claims/tables/
	install -m 644 configs/models/*.json $(DESTDIR)$(PREFIX)/share/normbench/configs/models/
	install -m 644 configs/models/readings/*.json $(DESTDIR)$(PREFIX)/share/normbench/configs/models/readings/
	install -m 644 $(filter-out %.txt,$(wildcard tests/data/*)) $(DESTDIR)$(PREFIX)/share/normbench/data/
	install -m 644 reports/schema/*.json $(DESTDIR)$(PREFIX)/share/normbench/schema/
	install -m 644 kernels/kernel.h $(DESTDIR)$(PREFIX)/share/normbench/kernels/
	install -m 644 $(wildcard $(addprefix kernels/peers/*.,c cpp h mk py)) $(DESTDIR)$(PREFIX)/share/normbench/kernels/peers/
	install -m 755 kernels/peers/get.sh kernels/peers/get_onednn-omp.sh $(DESTDIR)$(PREFIX)/share/normbench/kernels/peers/
	install -m 644 kernels/peers/wheels/*.txt $(DESTDIR)$(PREFIX)/share/normbench/kernels/peers/wheels/
	install -m 644 cmd/packaging/python/src/normbench/*.py $(DESTDIR)$(PREFIX)/share/normbench/python/normbench/
	install -m 644 cmd/packaging/python/src/normbench/models/*.py $(DESTDIR)$(PREFIX)/share/normbench/python/normbench/models/
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 bash-completion/completions)
	$(BUILD)/normbench help --man >$(DESTDIR)$(PREFIX)/share/man/man1/normbench.1
	for command in $(subst _,-,$(commands)); do \
	  $(BUILD)/normbench help --man $$command >$(DESTDIR)$(PREFIX)/share/man/man1/normbench-$$command.1 || exit 1; done
	$(BUILD)/normbench help --completions bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/normbench
	printf 'prefix=%s\nincludedir=$${prefix}/include/normbench\n\nName: normbench\nDescription: kernel ABI of the normbench laboratory\nVersion: %s\nCflags: -I$${includedir}\n' \
	  '$(PREFIX)' '$(VERSION)' >$(DESTDIR)$(PREFIX)/share/pkgconfig/normbench.pc
	cmd/packaging/documents.sh $(DESTDIR)$(PREFIX)
# Debian's package, and its test in a root of its own; 77: where that cannot be, which it says.
deb:
	BUILD=$(BUILD) cmd/packaging/debian/deb.sh
check-deb:
	[ -n "$(wildcard $(BUILD)/deb/normbench_*.deb)" ] || $(MAKE) deb
	BUILD=$(BUILD) cmd/packaging/debian/check.sh || [ $$? = 77 ]
# For pip; tests/cli/wheel.sh installs it.
wheel:
	$(MAKE) VARIANTS=all all
	BUILD=$(BUILD) KERNEL_LIBRARY=$(KERNEL_LIBRARY) cmd/packaging/python/wheel.sh
uninstall:
	rm -rf $(addprefix $(DESTDIR)$(PREFIX)/,bin/normbench lib/normbench include/normbench share/normbench share/doc/normbench \
	  share/pkgconfig/normbench.pc share/bash-completion/completions/normbench) \
	  $(DESTDIR)$(PREFIX)/share/man/man1/normbench.1 $(DESTDIR)$(PREFIX)/share/man/man1/normbench-*.1
clean:
	rm -rf $(BUILD)

-include $(wildcard $(BUILD)/src/*/*.d $(BUILD)/src/*/*/*.d $(BUILD)/cmd/*.d $(BUILD)/cmd/shared/*.d $(BUILD)/reports/*/*.d $(BUILD)/tests/*/*.d $(BUILD)/kernels/*.d)
