// SPDX-License-Identifier: Apache-2.0
/* The catalogue of mistakes.c: ways to compute wrongly or otherwise, each with the kinds of kernel of which one goes it. */
#pragma once

// clang-format off
#define WAYS(W) \
    /* eps */ \
    W(eps_outside, rms_f32, rms_bf16, ln_f32, ln_bf16, l2_f32, bn_f32) W(eps_times_n, rms_f32, rms_bf16, ln_f32) W(eps_over_n, rms_f32) \
    W(eps_forgotten, rms_f32, rms_bf16, rms_f16, ln_f32, addln_bf16, l2_f32) \
    W(eps_twice, rms_f32, rms_bf16, ln_f32, ln_bf16, add_f32, prms_f32, bn_f32) W(eps_fixed_1e5, rms_f32, rms_bf16, ln_f32) \
    W(eps_fixed_1e8, rms_f32) W(eps_squared, rms_f32) W(eps_root, rms_f32) W(eps_clamp, rms_f32, ln_f32, l2_f32) W(eps_bf16, rms_f32) \
    W(eps_minus, rms_f32) W(eps_on_rstd, rms_f32) W(eps_f16, rms_f32, rms_f16) \
    /* how many there are */ \
    W(n_minus_1, rms_f32, rms_bf16, ln_f32, ln_bf16, bn_f32, rmsb_f32, lnb_f32) W(n_plus_1, rms_f32) W(n_padded, rms_f32) W(n_rows, rms_f32) \
    /* sums */ \
    W(sum_bf16, rms_f32, rms_bf16, ln_f32, ln_bf16) W(sum_f16, rms_f32, rms_f16, ln_f16) W(sum_drops_last, rms_f32, rms_bf16, ln_f32) \
    W(sum_drops_tail, rms_f32, ln_f32) W(sum_first_twice, rms_f32) W(sum_loses_lane, rms_f32) W(sum_stops_at_1024, rms_f32) \
    W(squares_narrow, rms_f32, rms_bf16) W(squares_f16, rms_f16, ln_f16) \
    /* mean and variance */ \
    W(mean_kept, ln_f32) W(mean_not_in_variance, ln_f32) W(mean_of_previous_row, ln_f32) W(mean_narrow, ln_f32, ln_bf16, addln_bf16) \
    W(mean_drops_last, ln_f32) W(mean_n_minus_1, ln_f32) W(one_pass, ln_f32, ln_bf16, ln_f16) W(one_pass_unclamped, ln_f32) \
    W(variance_about_first, ln_f32) \
    /* root */ \
    W(root_estimate, rms_f32, rms_bf16) W(root_newton, rms_f32, ln_f32) W(root_magic, rms_f32) W(rstd_ulp_up, rms_f32, rms_bf16, rms_f16, ln_f32) \
    W(rstd_ulp_down, rms_f32, rms_bf16, ln_bf16) W(rstd_bf16, rms_f32, rms_bf16, rmsb_f32) W(rstd_truncated, rms_f32, ln_f32) \
    /* rounding of the result */ \
    W(truncates, rms_f32, rms_bf16, rms_f16, ln_f32, ln_bf16, add_f32, bn_f32, rmsb_f32, rmsb_bf16) \
    W(floors, rms_f32, rms_bf16, ln_f32, ln_bf16, rmsb_f32, lnb_bf16) W(rounds_up, rms_f32, rms_bf16) \
    W(ties_away, rms_f32, rms_bf16, rms_f16, ln_f32, ln_bf16, ln_f16, add_bf16, bn_bf16, rmsb_bf16) W(ties_up, rms_bf16, ln_bf16) \
    W(rounds_twice, rms_f32, rms_bf16, rms_f16) W(dithers, rms_f32, rms_bf16) \
    /* ends of the range */ \
    W(flushes_input, rms_f32, rms_f16) W(flushes_output, rms_f32, rms_bf16, rms_f16, rmsb_f32) W(daz_ftz, rms_f32, ln_f32) \
    W(nan_to_zero, rms_f32, rms_bf16) W(inf_to_max, rms_f32, rms_f16) W(clips_f16, rms_f32, rms_bf16) W(zero_sign, rms_f32) \
    /* parameters */ \
    W(offset_forgotten, rms_f32, rms_bf16, rmsb_f32) W(offset_always, rms_f32) W(offset_narrow, rms_f32, rms_bf16) W(gamma_next, rms_f32, ln_f32) \
    W(gamma_forgotten, rms_f32) W(gamma_narrow, rms_f32, rms_bf16) W(gamma_cast_before, rms_bf16, rms_f16, ln_bf16) W(gamma_twice, rms_f32) \
    W(gamma_abs, rms_f32) W(gamma_first, rms_f32) W(gamma_last_wrong, rms_f32) W(gamma_tail_forgotten, rms_f32) W(beta_forgotten, rms_f32, ln_f32) \
    W(beta_before_gamma, ln_f32) W(beta_next, ln_f32) W(beta_narrow, ln_f32, ln_bf16) W(beta_subtracted, ln_f32) W(beta_after_cast, ln_bf16) \
    /* rows and columns */ \
    W(row_last_if_odd, rms_f32, ln_f32) W(row_of_before, rms_f32) W(row_first_statistics, rms_f32) W(column_last_if_odd, rms_f32, ln_f32) \
    W(stride_ignored, rms_f32) \
    /* outputs beside y */ \
    W(rstd_is_variance, rms_f32) W(rstd_without_eps, rms_f32, ln_f32) W(rstd_out_bf16, rms_f32) W(mean_out_zero, ln_f32, bn_f32) \
    /* add_*, pRMSNorm, L2 */ \
    W(residual_not_in_statistics, add_f32) W(residual_out_is_x, add_f32, addln_bf16) W(residual_subtracted, add_f32) \
    W(residual_out_truncated, add_bf16) W(residual_sum_bf16, add_bf16) W(k_ignored, prms_f32) W(k_divides_by_n, prms_f32) W(l2_mean, l2_f32) \
    /* BatchNorm */ \
    W(statistics_of_first_image, bn_f32) W(running_biased, bn_f32) W(running_momentum_inverted, bn_f32) W(running_mean_kept, bn_f32) \
    W(inference_of_batch, bn_f32) W(channel_next, bn_f32) \
    /* backward */ \
    W(no_mean_term, lnb_f32) W(no_pull_term, rmsb_f32) W(no_weight_in_sums, rmsb_f32) W(no_weight, rmsb_f32) W(pull_without_rstd, rmsb_f32) \
    W(pull_drops_last, rmsb_f32) W(pull_bf16, rmsb_bf16) W(g_narrow, rmsb_bf16, lnb_bf16) W(xhat_narrow, rmsb_bf16) W(dgamma_bf16, rmsb_bf16) \
    W(dgamma_drops_row, rmsb_f32) W(dgamma_of_x, lnb_f32) W(dgamma_without_rstd, rmsb_f32) W(dgamma_mean, rmsb_f32) W(dgamma_adds, rmsb_f32) \
    W(dgamma_weighted, rmsb_f32) W(dgamma_truncated, rmsb_f32) W(dgamma_even_rows, rmsb_f32) W(dbeta_bf16, lnb_bf16) W(dbeta_first_twice, lnb_f32) \
    W(dbeta_weighted, lnb_f32) W(dbeta_f16, lnb_f32) W(no_residual, addb_bf16) W(residual_rounds_twice, addb_bf16) W(column_last_zero, rmsb_f32) \
    /* Written after the checks, which were made without them: what they find of these, src/decisions/0068-planted-mistakes.md says. */ \
    /* tails, lanes and padding */ \
    W(tail_twice, rms_f32) W(padding_in_variance, ln_f32) W(mean_padded, ln_f32) W(lane_not_reset, rms_f32) W(lanes_added_narrow, rms_bf16, rms_f16) \
    W(index_16_bit, rms_bf16) \
    /* strides, ranges and layouts */ \
    W(y_stride_of_x, ln_f32) W(residual_stride_of_x, add_f32) W(dy_stride_of_x, lnb_f32) W(range_last_lost, rms_f32) W(range_starts_late, ln_f32) \
    W(residual_of_first_row, add_bf16) W(layout_ignored, bn_f32) W(pull_of_previous_row, rmsb_f32) W(dgamma_16_rows, rmsb_f32) \
    /* which elements, which parameters */ \
    W(k_multiple_of_8, prms_f32) W(k_plus_1, prms_f32) W(k_last, prms_f32) W(l2_centred, l2_f32) W(gamma_beta_swapped, ln_f32, bn_f32) \
    /* eps, limits, the number of addends */ \
    W(eps_both, ln_f32) W(eps_at_least, rms_f32) W(unbiased_when_long, ln_f32) W(x_clipped, ln_f32) W(variance_at_most, rms_f32) \
    W(rstd_at_most, rms_bf16) W(nan_skipped, rms_f32) \
    /* formats on the way */ \
    W(through_f16, ln_bf16, rmsb_bf16) W(mean_sum_f16, ln_bf16) W(rstd_by_exp_log, rms_f32) W(running_bf16, bn_bf16) W(xhat_from_y, lnb_f32) \
    /* running statistics */ \
    W(training_of_running, bn_f32) \
    /* many rows */ \
    W(row_16_bit, rms_bf16) W(lanes_from_256_rows, rms_bf16) W(dy_nan_skipped, rmsb_f32) \
    /* of the call and the row, not of their numbers: relations between calls */ \
    W(by_place, rms_f32) W(by_batch, rms_f32) W(by_range, rms_f32) W(by_turn, rms_f32) W(by_size, rms_f32) W(last_bit_by_turn, rms_f32) \
    /* how it computes, for probes */ \
    W(flushes_all, rms_f32) W(truncates_before, rms_bf16) \
    /* what a backward pass reads, writes and takes for its own */ \
    W(changes_dy, rmsb_f32) W(reads_dy_behind, rmsb_f32) W(writes_dx_unwanted, rmsb_f32) W(own_rstd_without_eps, rmsb_f32) \
    W(writes_dgamma_behind, rmsb_f32) W(leaves_dgamma, rmsb_f32) W(dgamma_by_range, rmsb_f32) W(no_unit, rmsb_f32) \
    /* correct ones */ \
    W(correct, rms_f32, rms_bf16, rms_f16, ln_f32, ln_bf16, ln_f16, add_f32, add_bf16, addln_bf16, prms_f32, l2_f32, bn_f32, \
        bn_bf16, rmsb_f32, rmsb_bf16, lnb_f32, lnb_bf16, addb_bf16, addlnb_f32, bnb_f32) \
    W(lanes_8, rms_f32, rms_f16, ln_f32, prms_f32) W(lanes_64, rms_f32) W(pairwise, rms_f32, rms_bf16, ln_f32, ln_f16, add_bf16) \
    W(kahan, rms_f32, ln_f32, l2_f32) W(in_double, rms_f32, rms_bf16, rms_f16, ln_f32, ln_bf16, rmsb_f32, lnb_f32) \
    W(backwards, rms_f32, ln_f32, rmsb_bf16) W(divides, rms_f32, rms_bf16, ln_f32) W(welford, ln_f32, ln_bf16, addln_bf16) W(corrected, ln_f32) \
    W(one_pass_double, ln_f32) W(folded, ln_f32, ln_bf16) W(rstd_times_gamma, rms_f32, rms_bf16, ln_f32) W(rstd_from_double, rms_f32) \
    W(scaled, rms_f32) W(blocks_of_64, rms_f32) W(rsqrt_declared, rms_f32) W(own_rstd, rmsb_f32) W(variance_about_last, ln_f32)
// clang-format on
