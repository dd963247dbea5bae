/* A head of three tokens, rotated by their positions. */
#include <norm.h>

#include <stdio.h>
#include <stdlib.h>

static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}

int main(void) {
    float src[3][1][4] = {{{1, 0, 0, 1}}, {{1, 0, 0, 1}}, {{1, 0, 0, 1}}}, dst[3][1][4];
    int positions[3] = {0, 7, 131071};
    double frequencies[2];
    float magnitude;
    const norm_dims_t dims = {3, 1, 4}, position_dims = {3, 1}, pair_dims = {2};
    check(norm_rope_frequencies(norm_rope_scaling_none, 4, 10000.0, 0, NULL, frequencies, &magnitude));

    norm_engine_t engine;
    norm_stream_t stream;
    norm_memory_desc_t heads, tokens, pairs;
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));
    check(norm_memory_desc_create_with_tag(&heads, 3, dims, norm_f32, norm_abc));
    check(norm_memory_desc_create_with_tag(&tokens, 2, position_dims, norm_s32, norm_ab));
    check(norm_memory_desc_create_with_tag(&pairs, 1, pair_dims, norm_f64, norm_a));

    norm_memory_t x, y, p, f;
    check(norm_memory_create(&x, heads, engine, src));
    check(norm_memory_create(&y, heads, engine, dst));
    check(norm_memory_create(&p, tokens, engine, positions));
    check(norm_memory_create(&f, pairs, engine, frequencies));

    norm_primitive_desc_t desc;
    norm_primitive_t rope;
    check(norm_rope_forward_primitive_desc_create(&desc, engine, norm_forward_inference,
            norm_rope_half_split, norm_rope_from_frequencies, heads, heads, tokens, -1, NULL, NULL, 4,
            magnitude, 0, NULL, 0, 0, NULL));
    check(norm_primitive_create(&rope, desc));
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, x}, {NORM_ARG_DST, y}, {NORM_ARG_POSITIONS, p},
            {NORM_ARG_ROPE_FREQUENCIES, f}};
    check(norm_primitive_execute(rope, stream, 4, args));
    for (int t = 0; t < 3; ++t)
        printf("%6d  %7.4f %7.4f %7.4f %7.4f\n", positions[t], dst[t][0][0], dst[t][0][1],
                dst[t][0][2], dst[t][0][3]);

    norm_primitive_destroy(rope);
    norm_primitive_desc_destroy(desc);
    norm_memory_destroy(f);
    norm_memory_destroy(p);
    norm_memory_destroy(y);
    norm_memory_destroy(x);
    norm_memory_desc_destroy(pairs);
    norm_memory_desc_destroy(tokens);
    norm_memory_desc_destroy(heads);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
