// SPDX-License-Identifier: Apache-2.0
/* What is the same in every width that has vec16, a vector of 16 bits a lane, from what its header defines. */
#pragma once

static inline vec vec_load_f16(const uint16_t *p) { return nb_widen_f16(vec16_load(p)); }
static inline vec vec_load_bf16(const uint16_t *p) { return nb_widen_bf16(vec16_load(p)); }
static inline vec vec_load_f16_tail(const uint16_t *p, int64_t n) { return nb_widen_f16(vec16_load_tail(p, n)); }
static inline vec vec_load_bf16_tail(const uint16_t *p, int64_t n) { return nb_widen_bf16(vec16_load_tail(p, n)); }
static inline void vec_store_f16(uint16_t *p, vec v) { vec16_store(p, nb_narrow_f16(v)); }
static inline void vec_store_bf16(uint16_t *p, vec v) { vec16_store(p, nb_narrow_bf16(v)); }
static inline void vec_store_f16_tail(uint16_t *p, vec v, int64_t n) { vec16_store_tail(p, nb_narrow_f16(v), n); }
static inline void vec_store_bf16_tail(uint16_t *p, vec v, int64_t n) { vec16_store_tail(p, nb_narrow_bf16(v), n); }
static inline vec vec_round_f16(vec v) { return nb_widen_f16(nb_narrow_f16(v)); }
static inline vec vec_round_bf16(vec v) { return nb_widen_bf16(nb_narrow_bf16(v)); }
