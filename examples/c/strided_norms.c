/* Normalizes parts of tensors without copying them: the heads of queries and keys inside packed
 * projections, several trailing dimensions together, and an axis that is not the last.
 * Descriptors say where the rows are.
 *
 *     cargo build --release
 *     cc -Iinclude examples/c/strided_norms.c -Ltarget/release -lnorm
 *         -Wl,-rpath,$PWD/target/release
 */
#include <norm.h>

#include <stdio.h>
#include <stdlib.h>

static norm_engine_t engine;
static norm_stream_t stream;

static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}

/* RMS normalization in place, along the last dimension of the descriptor. */
static void rms_norm(const_norm_memory_desc_t desc, float *data) {
    norm_primitive_desc_t problem;
    norm_primitive_t primitive;
    norm_memory_t memory;
    check(norm_layer_normalization_forward_primitive_desc_create(&problem, engine,
            norm_forward_inference, desc, desc, NULL, 0, norm_rms_norm, NULL));
    check(norm_primitive_create(&primitive, problem));
    check(norm_memory_create(&memory, desc, engine, data));
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, memory}, {NORM_ARG_DST, memory}};
    check(norm_primitive_execute(primitive, stream, 2, args));
    norm_memory_destroy(memory);
    norm_primitive_destroy(primitive);
    norm_primitive_desc_destroy(problem);
}

/* ANCHOR: heads */
/* Rows of a packed projection: 4 heads of queries, 2 of keys, 2 of values. */
enum { TOKENS = 3, QUERIES = 4, KEYS = 2, HEAD = 8, PACKED = (QUERIES + 2 * KEYS) * HEAD };

static void normalize_heads(float *packed) {
    const norm_dims_t queries = {TOKENS, QUERIES, HEAD}, keys = {TOKENS, KEYS, HEAD};
    const norm_dims_t strides = {PACKED, HEAD, 1};
    norm_memory_desc_t query_desc, key_desc;
    check(norm_memory_desc_create_with_strides(&query_desc, 3, queries, norm_f32, strides));
    check(norm_memory_desc_create_with_strides(&key_desc, 3, keys, norm_f32, strides));
    rms_norm(query_desc, packed);
    rms_norm(key_desc, packed + QUERIES * HEAD);
    norm_memory_desc_destroy(query_desc);
    norm_memory_desc_destroy(key_desc);
}
/* ANCHOR_END: heads */

/* ANCHOR: trailing */
/* PyTorch's normalized_shape = (3, 4) of a tensor 2x3x4: rows of 12. */
static void normalize_trailing(float *data) {
    const norm_dims_t dims = {2, 3, 4}, rows = {2, 12};
    norm_memory_desc_t tensor, desc;
    check(norm_memory_desc_create_with_tag(&tensor, 3, dims, norm_f32, norm_abc));
    check(norm_memory_desc_reshape(&desc, tensor, 2, rows));
    rms_norm(desc, data);
    norm_memory_desc_destroy(tensor);
    norm_memory_desc_destroy(desc);
}
/* ANCHOR_END: trailing */

/* ANCHOR: axis */
/* Keras' axis = 1 of a tensor 2x3x4: axis 1 becomes the last one, axis 2 moves forward. */
static void normalize_axis(float *data) {
    const norm_dims_t dims = {2, 3, 4};
    const int permutation[] = {0, 2, 1};
    norm_memory_desc_t tensor, desc;
    check(norm_memory_desc_create_with_tag(&tensor, 3, dims, norm_f32, norm_abc));
    check(norm_memory_desc_permute_axes(&desc, tensor, permutation));
    rms_norm(desc, data);
    norm_memory_desc_destroy(tensor);
    norm_memory_desc_destroy(desc);
}
/* ANCHOR_END: axis */

/* The mean square of `count` elements with a stride. */
static double square(const float *data, int count, int stride) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += (double)data[i * stride] * data[i * stride];
    return sum / count;
}

static void fill(float *data, int count) {
    for (int i = 0; i < count; ++i) data[i] = (float)(i % 7 + 1 + i / 5);
}

int main(void) {
    float packed[TOKENS * PACKED], tensor[2 * 3 * 4];
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));

    fill(packed, TOKENS * PACKED);
    const float value = packed[(QUERIES + KEYS) * HEAD];
    normalize_heads(packed);
    printf("queries %.4f, keys %.4f, values %s\n", square(packed, HEAD, 1),
            square(packed + QUERIES * HEAD, HEAD, 1),
            packed[(QUERIES + KEYS) * HEAD] == value ? "as before" : "changed");

    fill(tensor, 24);
    normalize_trailing(tensor);
    printf("blocks of 3x4: %.4f %.4f\n", square(tensor, 12, 1), square(tensor + 12, 12, 1));

    fill(tensor, 24);
    normalize_axis(tensor);
    printf("axis 1: %.4f %.4f\n", square(tensor, 3, 4), square(tensor + 23 - 8, 3, 4));

    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
