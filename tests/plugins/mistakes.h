// SPDX-License-Identifier: Apache-2.0
/* The catalogue of mistakes.c: what may be done wrong, what may be done otherwise, and which kernel does which. */
#pragma once

// clang-format off
#define MISTAKES(M) \
    /* eps */ \
    M(eps_outside) M(eps_times_n) M(eps_over_n) M(eps_forgotten) M(eps_twice) M(eps_fixed_1e5) M(eps_fixed_1e8) M(eps_squared) M(eps_root) \
    M(eps_clamp) M(eps_bf16) M(eps_minus) M(eps_on_rstd) M(eps_f16) \
    /* how many there are */ \
    M(n_minus_1) M(n_plus_1) M(n_padded) M(n_rows) \
    /* sums */ \
    M(sum_bf16) M(sum_f16) M(sum_drops_last) M(sum_drops_tail) M(sum_first_twice) M(sum_loses_lane) M(sum_stops_at_1024) M(squares_narrow) \
    M(squares_f16) \
    /* mean and variance */ \
    M(mean_kept) M(mean_not_in_variance) M(mean_of_previous_row) M(mean_narrow) M(mean_drops_last) M(mean_n_minus_1) M(one_pass) \
    M(one_pass_unclamped) M(variance_about_first) \
    /* root */ \
    M(root_estimate) M(root_newton) M(root_magic) M(rstd_ulp_up) M(rstd_ulp_down) M(rstd_bf16) M(rstd_truncated) \
    /* rounding of the result */ \
    M(truncates) M(floors) M(rounds_up) M(ties_away) M(ties_up) M(rounds_twice) M(dithers) \
    /* ends of the range */ \
    M(flushes_input) M(flushes_output) M(daz_ftz) M(nan_to_zero) M(inf_to_max) M(clips_f16) M(zero_sign) \
    /* parameters */ \
    M(offset_forgotten) M(offset_always) M(offset_narrow) M(gamma_next) M(gamma_forgotten) M(gamma_narrow) M(gamma_cast_before) M(gamma_twice) \
    M(gamma_abs) M(gamma_first) M(gamma_last_wrong) M(gamma_tail_forgotten) M(beta_forgotten) M(beta_before_gamma) M(beta_next) M(beta_narrow) \
    M(beta_subtracted) M(beta_after_cast) \
    /* rows and columns */ \
    M(row_last_if_odd) M(row_of_before) M(row_last_copied) M(row_first_statistics) M(column_last_if_odd) M(stride_ignored) \
    /* outputs beside y */ \
    M(rstd_is_variance) M(rstd_without_eps) M(rstd_out_bf16) M(mean_out_zero) \
    /* add_*, pRMSNorm, L2 */ \
    M(residual_not_in_statistics) M(residual_out_is_x) M(residual_subtracted) M(residual_out_truncated) M(residual_sum_bf16) M(k_ignored) \
    M(k_divides_by_n) M(l2_mean) \
    /* BatchNorm */ \
    M(statistics_per_image) M(statistics_of_first_image) M(running_biased) M(running_momentum_inverted) M(running_mean_kept) M(inference_of_batch) \
    M(channel_next) \
    /* backward */ \
    M(no_mean_term) M(no_pull_term) M(no_weight_in_sums) M(no_weight) M(pull_without_rstd) M(pull_drops_last) M(pull_bf16) M(g_narrow) \
    M(xhat_narrow) M(dgamma_bf16) M(dgamma_drops_row) M(dgamma_of_x) M(dgamma_without_rstd) M(dgamma_mean) M(dgamma_adds) M(dgamma_weighted) \
    M(dgamma_truncated) M(dgamma_even_rows) M(dbeta_bf16) M(dbeta_first_twice) M(dbeta_weighted) M(dbeta_f16) M(no_residual) \
    M(residual_rounds_twice) M(column_last_zero) \
    /* tails, lanes and padding */ \
    M(tail_twice) M(padding_in_variance) M(mean_padded) M(lane_not_reset) M(lanes_added_narrow) M(index_16_bit) \
    /* strides, ranges and layouts */ \
    M(y_stride_of_x) M(residual_stride_of_x) M(dy_stride_of_x) M(range_last_lost) M(range_starts_late) M(residual_of_first_row) M(layout_ignored) \
    M(pull_of_previous_row) M(dgamma_16_rows) \
    /* which elements, which parameters */ \
    M(k_multiple_of_8) M(k_plus_1) M(k_last) M(l2_centred) M(gamma_beta_swapped) \
    /* eps, limits, the number of addends */ \
    M(eps_both) M(eps_at_least) M(unbiased_when_long) M(x_clipped) M(variance_at_most) M(rstd_at_most) M(nan_skipped) \
    /* formats on the way */ \
    M(through_f16) M(mean_sum_f16) M(rstd_by_exp_log) M(running_bf16) M(xhat_from_y) \
    /* running statistics */ \
    M(training_of_running) \
    /* many rows */ \
    M(row_16_bit) M(lanes_from_256_rows) M(dy_nan_skipped) \
    /* of the call and the row, not of their numbers: relations between calls */ \
    M(by_place) M(by_batch) M(by_range) M(by_turn) M(by_size) M(last_bit_by_turn) \
    /* how it computes, for probes */ \
    M(flushes_all) M(truncates_before) M(variance_about_last) \
    /* what a backward pass reads, writes and takes for its own */ \
    M(changes_dy) M(reads_dy_behind) M(writes_dx_unwanted) M(own_rstd_without_eps) M(writes_dgamma_behind) M(leaves_dgamma) M(dgamma_by_range) M(no_unit)

#define HONEST(M) \
    M(correct) M(lanes_8) M(lanes_64) M(pairwise) M(kahan) M(in_double) M(backwards) M(divides) M(welford) M(corrected) M(one_pass_double) M(folded) \
    M(rstd_times_gamma) M(rstd_from_double) M(scaled) M(blocks_of_64) M(rsqrt_declared) \
    M(own_rstd)
// clang-format on

/* Which kernels there are. */
// clang-format off
#define KERNELS(K) \
    K(rms_f32, eps_outside) K(rms_f32, eps_times_n) K(rms_f32, eps_over_n) K(rms_f32, eps_forgotten) K(rms_f32, eps_twice) K(rms_f32, eps_fixed_1e5) \
    K(rms_f32, eps_fixed_1e8) K(rms_f32, eps_squared) K(rms_f32, eps_root) K(rms_f32, eps_clamp) K(rms_f32, eps_bf16) K(rms_f32, eps_minus) \
    K(rms_f32, eps_on_rstd) K(rms_f32, eps_f16) K(rms_f32, n_minus_1) K(rms_f32, n_plus_1) K(rms_f32, n_padded) K(rms_f32, n_rows) \
    K(rms_f32, sum_bf16) K(rms_f32, sum_f16) K(rms_f32, sum_drops_last) K(rms_f32, sum_drops_tail) K(rms_f32, sum_first_twice) \
    K(rms_f32, sum_loses_lane) K(rms_f32, sum_stops_at_1024) K(rms_f32, squares_narrow) K(rms_f32, root_estimate) K(rms_f32, root_newton) \
    K(rms_f32, root_magic) K(rms_f32, rstd_ulp_up) K(rms_f32, rstd_ulp_down) K(rms_f32, rstd_bf16) K(rms_f32, rstd_truncated) K(rms_f32, truncates) \
    K(rms_f32, floors) K(rms_f32, rounds_up) K(rms_f32, ties_away) K(rms_f32, rounds_twice) K(rms_f32, dithers) K(rms_f32, flushes_input) \
    K(rms_f32, flushes_output) K(rms_f32, daz_ftz) K(rms_f32, nan_to_zero) K(rms_f32, inf_to_max) K(rms_f32, clips_f16) K(rms_f32, zero_sign) \
    K(rms_f32, offset_forgotten) K(rms_f32, offset_always) K(rms_f32, offset_narrow) K(rms_f32, gamma_next) K(rms_f32, gamma_forgotten) \
    K(rms_f32, gamma_narrow) K(rms_f32, gamma_twice) K(rms_f32, gamma_abs) K(rms_f32, gamma_first) K(rms_f32, gamma_last_wrong) \
    K(rms_f32, gamma_tail_forgotten) K(rms_f32, beta_forgotten) K(rms_f32, row_last_if_odd) K(rms_f32, row_of_before) \
    K(rms_f32, row_first_statistics) K(rms_f32, column_last_if_odd) K(rms_f32, stride_ignored) K(rms_f32, rstd_is_variance) \
    K(rms_f32, rstd_without_eps) K(rms_f32, rstd_out_bf16) K(rms_bf16, eps_outside) K(rms_bf16, eps_times_n) K(rms_bf16, eps_forgotten) \
    K(rms_bf16, eps_twice) K(rms_bf16, eps_fixed_1e5) K(rms_bf16, n_minus_1) K(rms_bf16, sum_bf16) K(rms_bf16, sum_drops_last) \
    K(rms_bf16, squares_narrow) K(rms_bf16, root_estimate) K(rms_bf16, rstd_ulp_up) K(rms_bf16, rstd_ulp_down) K(rms_bf16, rstd_bf16) \
    K(rms_bf16, truncates) K(rms_bf16, floors) K(rms_bf16, rounds_up) K(rms_bf16, ties_away) K(rms_bf16, ties_up) K(rms_bf16, rounds_twice) \
    K(rms_bf16, dithers) K(rms_bf16, flushes_output) K(rms_bf16, offset_forgotten) K(rms_bf16, offset_narrow) K(rms_bf16, gamma_narrow) \
    K(rms_bf16, gamma_cast_before) K(rms_bf16, nan_to_zero) K(rms_bf16, clips_f16) K(rms_f16, eps_f16) K(rms_f16, eps_forgotten) \
    K(rms_f16, squares_f16) K(rms_f16, sum_f16) K(rms_f16, truncates) K(rms_f16, ties_away) K(rms_f16, rounds_twice) K(rms_f16, flushes_input) \
    K(rms_f16, flushes_output) K(rms_f16, inf_to_max) K(rms_f16, rstd_ulp_up) K(rms_f16, gamma_cast_before) K(ln_f32, eps_outside) \
    K(ln_f32, eps_times_n) K(ln_f32, eps_forgotten) K(ln_f32, eps_twice) K(ln_f32, eps_fixed_1e5) K(ln_f32, eps_clamp) K(ln_f32, n_minus_1) \
    K(ln_f32, sum_bf16) K(ln_f32, sum_drops_last) K(ln_f32, sum_drops_tail) K(ln_f32, mean_kept) K(ln_f32, mean_not_in_variance) \
    K(ln_f32, mean_of_previous_row) K(ln_f32, mean_narrow) K(ln_f32, mean_drops_last) K(ln_f32, mean_n_minus_1) K(ln_f32, one_pass) \
    K(ln_f32, one_pass_unclamped) K(ln_f32, variance_about_first) K(ln_f32, root_newton) K(ln_f32, rstd_ulp_up) K(ln_f32, rstd_truncated) \
    K(ln_f32, truncates) K(ln_f32, floors) K(ln_f32, ties_away) K(ln_f32, daz_ftz) K(ln_f32, gamma_next) K(ln_f32, beta_forgotten) \
    K(ln_f32, beta_before_gamma) K(ln_f32, beta_next) K(ln_f32, beta_narrow) K(ln_f32, beta_subtracted) K(ln_f32, row_last_if_odd) \
    K(ln_f32, mean_out_zero) K(ln_f32, rstd_without_eps) K(ln_f32, column_last_if_odd) K(ln_bf16, eps_outside) K(ln_bf16, eps_twice) \
    K(ln_bf16, n_minus_1) K(ln_bf16, one_pass) K(ln_bf16, mean_narrow) K(ln_bf16, sum_bf16) K(ln_bf16, truncates) K(ln_bf16, floors) \
    K(ln_bf16, ties_away) K(ln_bf16, ties_up) K(ln_bf16, rstd_ulp_down) K(ln_bf16, beta_after_cast) K(ln_bf16, beta_narrow) \
    K(ln_bf16, gamma_cast_before) K(ln_f16, one_pass) K(ln_f16, squares_f16) K(ln_f16, sum_f16) K(ln_f16, ties_away) \
    K(add_f32, residual_not_in_statistics) K(add_f32, residual_out_is_x) K(add_f32, residual_subtracted) K(add_f32, eps_twice) K(add_f32, truncates) \
    K(add_bf16, residual_sum_bf16) K(add_bf16, residual_out_truncated) K(add_bf16, ties_away) K(addln_bf16, eps_forgotten) \
    K(addln_bf16, residual_out_is_x) K(addln_bf16, mean_narrow) K(prms_f32, k_ignored) K(prms_f32, k_divides_by_n) K(prms_f32, eps_twice) \
    K(l2_f32, l2_mean) K(l2_f32, eps_outside) K(l2_f32, eps_clamp) K(l2_f32, eps_forgotten) K(bn_f32, statistics_of_first_image) \
    K(bn_f32, running_biased) K(bn_f32, running_momentum_inverted) K(bn_f32, running_mean_kept) K(bn_f32, inference_of_batch) \
    K(bn_f32, channel_next) K(bn_f32, n_minus_1) K(bn_f32, eps_outside) K(bn_f32, eps_twice) K(bn_f32, truncates) K(bn_f32, mean_out_zero) \
    K(bn_bf16, ties_away) K(rmsb_f32, no_pull_term) K(rmsb_f32, n_minus_1) K(rmsb_f32, no_weight_in_sums) K(rmsb_f32, no_weight) \
    K(rmsb_f32, offset_forgotten) K(rmsb_f32, pull_without_rstd) K(rmsb_f32, pull_drops_last) K(rmsb_f32, truncates) K(rmsb_f32, floors) \
    K(rmsb_f32, dgamma_drops_row) K(rmsb_f32, dgamma_without_rstd) K(rmsb_f32, dgamma_mean) K(rmsb_f32, dgamma_adds) K(rmsb_f32, dgamma_weighted) \
    K(rmsb_f32, dgamma_truncated) K(rmsb_f32, dgamma_even_rows) K(rmsb_f32, rstd_bf16) K(rmsb_f32, flushes_output) K(rmsb_f32, column_last_zero) \
    K(rmsb_bf16, dgamma_bf16) K(rmsb_bf16, pull_bf16) K(rmsb_bf16, g_narrow) K(rmsb_bf16, xhat_narrow) K(rmsb_bf16, truncates) \
    K(rmsb_bf16, ties_away) K(lnb_f32, no_mean_term) K(lnb_f32, dgamma_of_x) K(lnb_f32, dbeta_first_twice) K(lnb_f32, dbeta_weighted) \
    K(lnb_f32, n_minus_1) K(lnb_f32, dbeta_f16) K(lnb_bf16, dbeta_bf16) K(lnb_bf16, g_narrow) K(lnb_bf16, floors) K(addb_bf16, no_residual) \
    K(addb_bf16, residual_rounds_twice) \
    /* written after the checks, which were made without them: what they find of these, src/decisions/0068-planted-mistakes.md says */ \
    K(rms_f32, tail_twice) K(rms_f32, lane_not_reset) K(rms_f32, range_last_lost) K(rms_f32, eps_at_least) K(rms_f32, variance_at_most) \
    K(rms_f32, rstd_by_exp_log) K(rms_f32, nan_skipped) K(rms_bf16, lanes_added_narrow) K(rms_bf16, index_16_bit) K(rms_bf16, rstd_at_most) \
    K(rms_f16, lanes_added_narrow) K(ln_f32, padding_in_variance) K(ln_f32, mean_padded) K(ln_f32, y_stride_of_x) K(ln_f32, range_starts_late) \
    K(ln_f32, gamma_beta_swapped) K(ln_f32, eps_both) K(ln_f32, unbiased_when_long) K(ln_f32, x_clipped) K(ln_bf16, through_f16) \
    K(ln_bf16, mean_sum_f16) K(add_f32, residual_stride_of_x) K(add_bf16, residual_of_first_row) K(prms_f32, k_multiple_of_8) K(prms_f32, k_plus_1) \
    K(prms_f32, k_last) K(l2_f32, l2_centred) K(bn_f32, gamma_beta_swapped) K(bn_f32, layout_ignored) K(bn_f32, training_of_running) \
    K(bn_bf16, running_bf16) K(rmsb_f32, pull_of_previous_row) K(rmsb_f32, dgamma_16_rows) K(rmsb_bf16, through_f16) K(lnb_f32, dy_stride_of_x) \
    K(lnb_f32, xhat_from_y) K(rms_bf16, row_16_bit) K(rms_bf16, lanes_from_256_rows) \
    K(rmsb_f32, dy_nan_skipped) K(rms_f32, by_place) K(rms_f32, by_batch) K(rms_f32, by_range) K(rms_f32, by_turn) K(rms_f32, by_size) \
    K(rms_f32, last_bit_by_turn) K(rms_f32, flushes_all) K(rms_bf16, truncates_before) K(ln_f32, variance_about_last) \
    K(rmsb_f32, changes_dy) K(rmsb_f32, reads_dy_behind) K(rmsb_f32, writes_dx_unwanted) K(rmsb_f32, own_rstd_without_eps) \
    K(rmsb_f32, writes_dgamma_behind) K(rmsb_f32, leaves_dgamma) K(rmsb_f32, dgamma_by_range) K(rmsb_f32, no_unit) \
    /* correct ones */ \
    K(rms_f32, correct) K(rms_f32, lanes_8) K(rms_f32, lanes_64) K(rms_f32, pairwise) K(rms_f32, kahan) K(rms_f32, in_double) K(rms_f32, backwards) \
    K(rms_f32, divides) K(rms_f32, rstd_times_gamma) K(rms_f32, rstd_from_double) K(rms_f32, scaled) K(rms_f32, blocks_of_64) \
    K(rms_f32, rsqrt_declared) K(rms_bf16, correct) K(rms_bf16, pairwise) K(rms_bf16, in_double) K(rms_bf16, divides) K(rms_bf16, rstd_times_gamma) \
    K(rms_f16, correct) K(rms_f16, lanes_8) K(rms_f16, in_double) K(ln_f32, correct) K(ln_f32, lanes_8) K(ln_f32, pairwise) K(ln_f32, kahan) \
    K(ln_f32, in_double) K(ln_f32, backwards) K(ln_f32, divides) K(ln_f32, welford) K(ln_f32, corrected) K(ln_f32, one_pass_double) \
    K(ln_f32, folded) K(ln_f32, rstd_times_gamma) K(ln_bf16, correct) K(ln_bf16, welford) K(ln_bf16, in_double) K(ln_bf16, folded) \
    K(ln_f16, correct) K(ln_f16, pairwise) K(add_f32, correct) K(add_bf16, correct) K(add_bf16, pairwise) K(addln_bf16, correct) \
    K(addln_bf16, welford) K(prms_f32, correct) K(prms_f32, lanes_8) K(l2_f32, correct) K(l2_f32, kahan) K(bn_f32, correct) K(bn_bf16, correct) \
    K(rmsb_f32, correct) K(rmsb_f32, in_double) K(rmsb_bf16, correct) K(rmsb_bf16, backwards) K(lnb_f32, correct) K(lnb_f32, in_double) \
    K(lnb_bf16, correct) K(addb_bf16, correct) K(rmsb_f32, own_rstd) K(addlnb_f32, correct) K(bnb_f32, correct)
// clang-format on
