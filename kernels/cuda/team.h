// SPDX-License-Identifier: Apache-2.0
/* Threads that share a row, from a few lanes of a warp to a cluster of blocks, and their sums: by shuffles within a warp, through shared
 * memory between warps, through that of the other blocks within a cluster. All of them get the same bits. */
#pragma once

#include "kernels/cuda/device.h"

struct team {
    uint32_t group, cluster, rank, turn;
    uint32_t mask; /* lanes of the warp that share the row */
    float *shared;
};

DEVICE uint32_t lower(uint32_t a, uint32_t b) { return a < b ? a : b; }
DEVICE struct team team_of(struct team_args a) {
    const uint32_t lanes = lower(a.group, WARP), lane = thread_index() % WARP;
    struct team t;
    t.group = a.group;
    t.cluster = a.cluster;
    t.rank = block_index() % a.cluster;
    t.turn = 0;
    t.mask = PLANTED == WIDE_MASK || lanes == WARP ? 0xffffffffu : ((1u << lanes) - 1u) << lane / lanes * lanes;
    t.shared = (float *)shared_buffer();
    return t;
}
/* Of a kernel's own in shared memory. */
DEVICE float *own_shared(const struct team &t) { return t.shared + TEAM_FLOATS; }
/* The first vector of a thread, in elements, and the distance to its next. */
DEVICE int64_t first_of(const struct team &t, int vec) {
    return ((int64_t)t.rank * t.group + thread_index() % t.group) * vec;
}
DEVICE int64_t step_of(const struct team &t, int vec) { return (int64_t)t.cluster * t.group * vec; }
DEVICE bool is_first(const struct team &t) { return t.rank == 0 && thread_index() % t.group == 0; }

template <int N> DEVICE void add_lanes(float (&v)[N], uint32_t mask, uint32_t lanes) {
    for (uint32_t d = lanes / 2; d >= (PLANTED == SHORT_SHUFFLE ? 2 : 1); d /= 2)
#pragma unroll
        for (int i = 0; i < N; i++) v[i] += shuffle_xor(mask, v[i], d);
}

/* Each of N sums over the threads that share the row. Two halves of the buffer take turns, so that one barrier a sum is enough: who writes a
 * half again has passed the barrier that all reached after they had read it. */
template <int N> DEVICE void add_team(float (&v)[N], struct team &t) {
    const uint32_t warps = t.group / WARP, lane = thread_index() % WARP, warp = thread_index() / WARP;
    add_lanes(v, t.mask, lower(t.group, WARP));
    if (t.group <= WARP) return;
    float *const partial = t.shared + t.turn * 16, *const own = t.shared + 32 + t.turn * 2;
#pragma unroll
    for (int i = 0; i < N; i++)
        if (lane == 0 && (PLANTED != UNWRITTEN_SHARED || warp > 0)) partial[i * 8 + warp] = v[i];
    if (PLANTED != NO_BARRIER && (PLANTED != BRANCHED_BARRIER || warp > 0)) barrier();
#pragma unroll
    for (int i = 0; i < N; i++) v[i] = partial[i * 8 + lane % warps];
    add_lanes(v, t.mask, warps);
    if (t.cluster > 1) {
#pragma unroll
        for (int i = 0; i < N; i++)
            if (thread_index() == 0) own[i] = v[i];
        cluster_barrier();
#pragma unroll
        for (int i = 0; i < N; i++) {
            v[i] = *on_rank(own + i, 0);
            for (uint32_t rank = 1; rank < t.cluster; rank++) v[i] += *on_rank(own + i, rank);
        }
    }
    t.turn ^= 1;
}

/* A thread's sums are added to these in turn: the tree over them, then over the threads that share the row. */
enum { ACCUMULATORS = 4 };
DEVICE float add_accumulators(const float (&acc)[ACCUMULATORS]) { return (acc[0] + acc[1]) + (acc[2] + acc[3]); }
DEVICE float add_accumulators(const float (&acc)[ACCUMULATORS], struct team &t) {
    float sum[1] = {add_accumulators(acc)};
    add_team(sum, t);
    return sum[0];
}

/* ---- the same sums, bit by bit, where every lane of the block takes part ---- */

/* Over 2^n lanes that share a row. */
template <int N> DEVICE void add_lanes_of(float (&v)[N], uint32_t lanes) {
#pragma unroll
    for (uint32_t d = WARP / 2; d >= (PLANTED == SHORT_SHUFFLE ? 2 : 1); d /= 2)
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float other = shuffle_xor(0xffffffffu, v[i], d);
            if (d < lanes) v[i] += other;
        }
}
/* Of eight warps' sums, zeros where there are no warps, as shuffles would add them: no sum is -0, so that zeros change no bit. */
DEVICE float add_eight(const float *warps) {
    float p[8];
    load_shared(p, warps);
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}
/* Over the warps of a rank, 8 at most, which is a block or one of its RANKS: each thread adds their sums itself, then the ranks one after
 * another. partial: 8 floats a rank; two of them take turns as in add_team(). */
template <int RANKS = 1> DEVICE float add_block(float v, float *partial) {
    const uint32_t lane = thread_index() % WARP, warp = thread_index() / WARP;
    const uint32_t place = warp + lane * (block_size() / WARP);
    float sum[1] = {v}, all = 0.0f;
    add_lanes_of(sum, WARP);
    if (place < 8 * RANKS && (PLANTED != UNWRITTEN_SHARED || warp > 0)) partial[place] = lane == 0 ? sum[0] : 0.0f;
    if (PLANTED != NO_BARRIER && (PLANTED != BRANCHED_BARRIER || warp > 0)) barrier();
#pragma unroll
    for (int r = 0; r < RANKS; r++) {
        const float own = add_eight(partial + 8 * r);
        all = r == 0 ? own : all + own;
    }
    return all;
}

/* Sums over the blocks of a cluster, one after another: each block sends its own to all of them, whose boxes count what has come. Who begins a
 * sum has those of all others of the sum before, and so all have read the one before that: two places take turns; sum n is the n-th. */
template <int K>
DEVICE void add_blocks(float (&v)[K], float *blocks, uint64_t *box, uint32_t cluster, uint32_t rank, uint32_t n) {
    if (thread_index() == 0) box_expect(box, cluster * K * sizeof(float));
#pragma unroll
    for (int k = 0; k < K; k++)
        if (thread_index() < cluster) post(blocks + k * 8 + rank, box, thread_index(), v[k]);
    box_wait(box, n / 2 % 2);
#pragma unroll
    for (int k = 0; k < K; k++) {
        float p[CLUSTER];
        load_shared(p, blocks + k * 8);
        v[k] = p[0];
#pragma unroll
        for (int other = 1; other < CLUSTER; other++) v[k] += p[other];
    }
}
struct cluster_sums {
    uint32_t cluster, rank, n;
};
DEVICE uint64_t *box_of(uint32_t turn) { return (uint64_t *)((float *)shared_buffer() + 32) + turn; }
/* Before the first sum, cluster_wait(): the boxes of all blocks are ready, and zeros stand for blocks that there are not. */
DEVICE struct cluster_sums cluster_sums_of(uint32_t cluster, uint32_t rank) {
    if (thread_index() < 2) box_init(box_of(thread_index()));
    if (thread_index() < 32) ((float *)shared_buffer())[thread_index()] = 0.0f;
    cluster_arrive();
    return cluster_sums{cluster, rank, 0};
}
DEVICE float add_cluster(float v, struct cluster_sums &s) {
    const uint32_t turn = s.n % 2;
    float *const shared = (float *)shared_buffer() + turn * 16, sum[1] = {add_block(v, shared)};
    add_blocks(sum, shared + 8, box_of(turn), s.cluster, s.rank, s.n);
    s.n++;
    return sum[0];
}

/* A block's shared memory is read by the others until all are here. */
DEVICE void leave_team(const struct team &t) {
    if (t.cluster > 1) cluster_barrier();
}
