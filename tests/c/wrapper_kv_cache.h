// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// KV caches in C++; part of wrapper.cpp.
#ifndef WRAPPER_KV_CACHE_H
#define WRAPPER_KV_CACHE_H

#include "wrapper_sdpa.h"

// Two tokens, one at a time, then a fork.
static void kv_caches() {
    using dt = norm::memory::data_type;
    using tag = norm::memory::format_tag;
    norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);
    norm::kv_cache_options settings;
    settings.kind = norm::kv_cache_kind::paged;
    settings.data_type = dt::f32;
    settings.layers = settings.kv_heads = settings.key_size = settings.value_size = 1;
    settings.sequences = 2;
    settings.tokens = 4;
    settings.step_tokens = settings.page_size = 2;
    const norm::kv_cache cache(engine, settings);
    const norm::memory::desc row({1, 1, 1, 1}, dt::f32, tag::abcd);
    norm::sdpa_options options;
    options.mask_type = norm::attn_mask_type::bottom_right;
    options.flags = norm_sdpa_key_lengths;
    options.page_table = cache.page_table_desc(1);
    const norm::sdpa_forward attention(norm::sdpa_forward::primitive_desc(engine,
            norm::prop_kind::forward_inference, row, cache.key_desc(), cache.value_desc(), row, 1,
            options));
    const auto first = cache.new_sequence();
    float dst = 0;
    for (float token : {2.0f, 4.0f}) {
        float key = 1;
        cache.extend({first}, {1});
        cache.write(stream, 0, norm::memory(row, engine, &key), norm::memory(row, engine, &token));
        auto args = cache.get_arguments(0, {first});
        EXPECT(args.size() == 4);
        args.emplace(NORM_ARG_QUERIES, norm::memory(row, engine, &key));
        args.emplace(NORM_ARG_DST, norm::memory(row, engine, &dst));
        attention.execute(stream, args);
    }
    EXPECT(dst == 3 && cache.get_length(first) == 2);
    const auto copy = cache.fork(first);
    cache.truncate(copy, 1);
    EXPECT(cache.get_length(copy) == 1 && cache.get_stats().shared_pages == 1);
    cache.extend({copy}, {1});
    EXPECT(cache.get_stats().copied_pages == 1 && cache.get_rope_arguments(0).size() == 3);
    EXPECT(cache.rope_dst_desc().get_dims() == norm::memory::dims({4, 2, 1, 1}));
    cache.drop(copy);
    THROWS(norm_invalid_arguments, "sequence", cache.drop(copy));
    THROWS(norm_invalid_arguments, "tokens has 2 entries, but sequences has 1",
            cache.extend({first}, {1, 2}));
    THROWS(norm_invalid_arguments, "layer", cache.get_arguments(1, {first}));
    settings.data_type = dt::s8;
    const norm::kv_cache quantized(engine, settings);
    const auto third = quantized.new_sequence();
    float pair = -3;
    quantized.extend({third}, {1});
    quantized.write(stream, 0, norm::memory(row, engine, &pair), norm::memory(row, engine, &pair));
    norm::primitive_attr attr;
    attr.set_scales_mask(NORM_ARG_KEYS, 11);
    attr.set_scales_mask(NORM_ARG_VALUES, 7);
    options.page_table = quantized.page_table_desc(1);
    const norm::sdpa_forward with_scales(norm::sdpa_forward::primitive_desc(engine,
            norm::prop_kind::forward_inference, row, quantized.key_desc(), quantized.value_desc(),
            row, 1, options, attr));
    auto args = quantized.get_arguments(0, {third});
    EXPECT(args.size() == 6);
    args.emplace(NORM_ARG_QUERIES, norm::memory(row, engine, &pair));
    args.emplace(NORM_ARG_DST, norm::memory(row, engine, &dst));
    with_scales.execute(stream, args);
    EXPECT(dst == -127 * (3 / 127.0f));
    THROWS(norm_unimplemented, "norm_kv_cache_write", quantized.get_rope_arguments(0));
    THROWS(norm_unimplemented, "rope_dst_desc", quantized.rope_dst_desc());
    settings.window = 2;
    THROWS(norm_invalid_arguments, "window", norm::kv_cache(engine, settings));
}

#endif
