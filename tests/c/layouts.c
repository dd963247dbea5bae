/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Descriptors with blocks, derived from others and restored from blobs. Layer
 * normalization finds the elements at the offsets that they describe.
 */
#include "offsets.h"
#include "refused.h"
#include "tensor.h"

static norm_engine_t engine;
static norm_stream_t stream;

static norm_memory_desc_t desc_of(
        int ndims, const norm_dim_t *dims, norm_data_type_t type, norm_format_tag_t tag) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, ndims, dims, type, tag));
    return desc;
}

static int same(const norm_dim_t *got, norm_dim_t a, norm_dim_t b) {
    return got[0] == a && got[1] == b;
}

static void blocks(void) {
    const norm_dims_t dims = {20, 30};
    norm_memory_desc_t desc = desc_of(2, dims, norm_f32, norm_AB16b16a);
    const offsets_t p = offsets_of(desc);
    EXPECT(same(p.dims, 20, 30) && same(p.padded, 32, 32) && same(p.strides, 512, 256));
    EXPECT(p.blocks == 2 && same(p.sizes, 16, 16) && same(p.cut, 1, 0) && p.offset == 0);
    EXPECT(norm_memory_desc_get_size(desc) == 32 * 32 * 4);
    EXPECT(norm_memory_desc_get_size_v2(desc, 0) == 32 * 32 * 4);
    FAILS_WITH(0, "index", norm_memory_desc_get_size_v2, (desc, 1));
    EXPECT(strcmp(norm_fmt_tag2str(norm_ABcd16b16a), "ABcd16b16a") == 0);
    EXPECT(strcmp(norm_fmt_tag2str(norm_nChw16c), "aBcd16b") == 0);
    int number = 0;
    EXPECT(norm_memory_desc_query_v2(desc, norm_query_num_handles_s32, 0, &number)
            == norm_success);
    EXPECT(number == 1);
    INVALID("index", norm_memory_desc_query_v2, (desc, norm_query_ndims_s32, 1, &number));
    INVALID("memory_desc", norm_memory_desc_query_v2, (NULL, norm_query_ndims_s32, 0, &number));
    INVALID("what", norm_memory_desc_query, (desc, norm_query_nnz_s64, &number));
    norm_memory_desc_t plain = desc_of(2, dims, norm_f32, norm_ab);
    EXPECT(norm_memory_desc_equal(desc, plain) == 0);
    MUST(norm_memory_desc_destroy(plain));
    MUST(norm_memory_desc_destroy(desc));
}

static void parts(void) {
    const norm_dims_t dims = {32, 48}, part_dims = {16, 20}, offsets = {16, 4}, cut = {3, 4};
    const norm_dims_t negative = {-1, 0}, beyond = {16, 29};
    norm_memory_desc_t whole = desc_of(2, dims, norm_f32, norm_ba), part = NULL;
    norm_memory_desc_t out = UNTOUCHED;
    MUST(norm_memory_desc_create_submemory(&part, whole, part_dims, offsets));
    const offsets_t p = offsets_of(part);
    EXPECT(same(p.dims, 16, 20) && same(p.strides, 1, 32) && p.offset == 16 + 4 * 32);
    EXPECT(norm_memory_desc_get_size(part) == (16 + 4 * 32 + 15 + 19 * 32 + 1) * 4);
    INVALID("memory_desc", norm_memory_desc_create_submemory, (NULL, whole, part_dims, offsets));
    INVALID("parent_memory_desc", norm_memory_desc_create_submemory,
            (&out, NULL, part_dims, offsets));
    INVALID("dims", norm_memory_desc_create_submemory, (&out, whole, NULL, offsets));
    INVALID("offsets", norm_memory_desc_create_submemory, (&out, whole, part_dims, NULL));
    INVALID("dims", norm_memory_desc_create_submemory, (&out, whole, negative, offsets));
    INVALID("offsets", norm_memory_desc_create_submemory, (&out, whole, part_dims, negative));
    INVALID("offsets", norm_memory_desc_create_submemory, (&out, whole, part_dims, beyond));
    norm_memory_desc_t blocked = desc_of(2, dims, norm_f32, norm_AB16b16a);
    REFUSED(norm_unimplemented, "offsets", norm_memory_desc_create_submemory,
            (&out, blocked, part_dims, cut));
    EXPECT(out == UNTOUCHED);
    MUST(norm_memory_desc_destroy(blocked));
    MUST(norm_memory_desc_destroy(whole));
    MUST(norm_memory_desc_destroy(part));
}

static void other_dimensions(void) {
    const norm_dims_t dims = {20, 3, 4}, joined = {20, 12}, wrong = {20, 13}, cut = {10, 24};
    static const int rotated[] = {2, 0, 1}, twice[] = {0, 0, 1}, far[] = {0, 1, 3};
    norm_memory_desc_t desc = desc_of(3, dims, norm_f32, norm_Abc16a);
    norm_memory_desc_t made = NULL, out = UNTOUCHED;
    MUST(norm_memory_desc_reshape(&made, desc, 2, joined));
    const offsets_t before = offsets_of(desc), after = offsets_of(made);
    EXPECT(after.ndims == 2 && same(after.dims, 20, 12) && after.blocks == 1);
    for (norm_dim_t i = 0; i < 240; ++i)
        EXPECT(offsets_flat(&before, i) == offsets_flat(&after, i));
    INVALID("dims", norm_memory_desc_reshape, (&out, desc, 2, wrong));
    INVALID("dims", norm_memory_desc_reshape, (&out, desc, 2, cut));
    INVALID("dims", norm_memory_desc_reshape, (&out, desc, 2, NULL));
    INVALID("ndims", norm_memory_desc_reshape, (&out, desc, 13, joined));
    INVALID("in_memory_desc", norm_memory_desc_reshape, (&out, NULL, 2, joined));
    INVALID("in_memory_desc", norm_memory_desc_reshape, (&out, desc, 0, joined));
    INVALID("out_memory_desc", norm_memory_desc_reshape, (NULL, desc, 2, joined));
    MUST(norm_memory_desc_destroy(made));

    MUST(norm_memory_desc_permute_axes(&made, desc, rotated));
    const offsets_t turned = offsets_of(made);
    EXPECT(turned.dims[0] == 3 && turned.dims[1] == 4 && turned.dims[2] == 20);
    for (norm_dim_t i = 0; i < 240; ++i) {
        norm_dims_t index;
        offsets_index(before.dims, 3, i, index);
        const norm_dim_t to[] = {index[1], index[2], index[0]};
        EXPECT(offsets_at(&before, index) == offsets_at(&turned, to));
    }
    INVALID("permutation", norm_memory_desc_permute_axes, (&out, desc, twice));
    INVALID("permutation", norm_memory_desc_permute_axes, (&out, desc, far));
    INVALID("permutation", norm_memory_desc_permute_axes, (&out, desc, NULL));
    INVALID("in_memory_desc", norm_memory_desc_permute_axes, (&out, NULL, rotated));
    INVALID("out_memory_desc", norm_memory_desc_permute_axes, (NULL, desc, rotated));
    norm_memory_desc_t empty = NULL;
    MUST(norm_memory_desc_create_with_tag(&empty, 0, joined, norm_f32, norm_format_tag_any));
    INVALID("in_memory_desc", norm_memory_desc_permute_axes, (&out, empty, rotated));
    MUST(norm_memory_desc_destroy(empty));
    EXPECT(out == UNTOUCHED);
    MUST(norm_memory_desc_destroy(made));
    MUST(norm_memory_desc_destroy(desc));
}

static void by_letters(void) {
    const norm_dims_t dims = {20, 30, 2}, huge = {INT64_MAX / 4, 2, 2};
    norm_memory_desc_t tagged = desc_of(3, dims, norm_f32, norm_ABc16b16a);
    norm_memory_desc_t made = NULL, out = UNTOUCHED;
    static const char *const wrong[] = {"", "ab", "abb", "abd", "abcd", "ab c", "abc16",
            "abc16d", "abc0c", "16abc", "any", "abc-8c", "abc99999999999c", "abc\xff"};

    MUST(norm_memory_desc_create_with_string_tag(&made, 3, dims, norm_f32, "ABc16b16a"));
    EXPECT(norm_memory_desc_equal(made, tagged) == 1);
    MUST(norm_memory_desc_set_data_type(made, norm_f64));
    EXPECT(norm_memory_desc_equal(made, tagged) == 0);
    EXPECT(norm_memory_desc_get_size(made) == 2 * norm_memory_desc_get_size(tagged));
    INVALID("data_type", norm_memory_desc_set_data_type, (made, norm_data_type_undef));
    INVALID("data_type", norm_memory_desc_set_data_type, (made, (norm_data_type_t)1000));
    INVALID("memory_desc", norm_memory_desc_set_data_type, (NULL, norm_f32));
    MUST(norm_memory_desc_set_data_type(made, norm_f32));
    EXPECT(norm_memory_desc_equal(made, tagged) == 1);
    MUST(norm_memory_desc_destroy(made));

    /* No tag: c outermost, then blocks of 7 and 6. */
    MUST(norm_memory_desc_create_with_string_tag(&made, 3, dims, norm_s8, "cBA6a7b"));
    const offsets_t places = offsets_of(made);
    const norm_dim_t index[] = {13, 22, 1};
    EXPECT(norm_memory_desc_get_size(made) == 24 * 35 * 2);
    EXPECT(offsets_at(&places, index) == ((1 * 5 + 22 / 7) * 4 + 13 / 6) * 42 + 13 % 6 * 7 + 22 % 7);
    MUST(norm_memory_desc_destroy(made));

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i)
        INVALID("tag", norm_memory_desc_create_with_string_tag,
                (&out, 3, dims, norm_f32, wrong[i]));
    INVALID("tag", norm_memory_desc_create_with_string_tag, (&out, 3, dims, norm_f32, NULL));
    INVALID("dims", norm_memory_desc_create_with_string_tag, (&out, 3, huge, norm_f32, "abc"));
    INVALID("dims", norm_memory_desc_create_with_string_tag, (&out, 3, NULL, norm_f32, "abc"));
    INVALID("ndims", norm_memory_desc_create_with_string_tag, (&out, 13, dims, norm_f32, "abc"));
    INVALID("data_type", norm_memory_desc_create_with_string_tag,
            (&out, 3, dims, norm_data_type_undef, "abc"));
    INVALID("memory_desc", norm_memory_desc_create_with_string_tag,
            (NULL, 3, dims, norm_f32, "abc"));
    EXPECT(out == UNTOUCHED);
    MUST(norm_memory_desc_create_with_string_tag(&made, 0, NULL, norm_f32, NULL));
    INVALID("memory_desc", norm_memory_desc_set_data_type, (made, norm_f32));
    MUST(norm_memory_desc_destroy(made));
    MUST(norm_memory_desc_create_with_string_tag(&made, 1, huge, norm_s8, "a"));
    INVALID("data_type", norm_memory_desc_set_data_type, (made, norm_f64));
    EXPECT(norm_memory_desc_get_size(made) == INT64_MAX / 4);
    MUST(norm_memory_desc_destroy(made));
    MUST(norm_memory_desc_destroy(tagged));
}

static void as_bytes(void) {
    const norm_dims_t dims = {20, 30};
    norm_memory_desc_t desc = desc_of(2, dims, norm_bf16, norm_AB16b16a);
    norm_memory_desc_t made = NULL, out = UNTOUCHED;
    size_t size = 0, little = 1;
    MUST(norm_memory_desc_get_blob(NULL, &size, desc));
    uint8_t *blob = malloc(size);
    MUST(norm_memory_desc_get_blob(blob, &size, desc));
    MUST(norm_memory_desc_create_with_blob(&made, blob));
    EXPECT(norm_memory_desc_equal(made, desc) == 1);
    for (size_t i = 0; i < size; ++i) {
        blob[i] ^= 4;
        EXPECT(norm_memory_desc_create_with_blob(&out, blob) == norm_invalid_arguments);
        blob[i] ^= 4;
    }
    /* A buffer with other data is not read to the size of a blob. */
    uint8_t *other = calloc(8, 1);
    INVALID("blob", norm_memory_desc_create_with_blob, (&out, other));
    free(other);
    INVALID("blob", norm_memory_desc_create_with_blob, (&out, NULL));
    INVALID("memory_desc", norm_memory_desc_create_with_blob, (NULL, blob));
    INVALID("size", norm_memory_desc_get_blob, (blob, NULL, desc));
    INVALID("size", norm_memory_desc_get_blob, (blob, &little, desc));
    INVALID("memory_desc", norm_memory_desc_get_blob, (blob, &size, NULL));
    EXPECT(out == UNTOUCHED);
    free(blob);
    MUST(norm_memory_desc_destroy(made));
    MUST(norm_memory_desc_destroy(desc));
}

static void buffers_by_number(void) {
    const norm_dims_t dims = {2, 3};
    float data[6] = {0}, other[6] = {0};
    void *handles[] = {data}, *got = NULL;
    norm_memory_desc_t desc = desc_of(2, dims, norm_f32, norm_ab);
    norm_memory_t memory = NULL, out = UNTOUCHED;
    MUST(norm_memory_create_v2(&memory, desc, engine, 1, handles));
    EXPECT(norm_memory_get_data_handle_v2(memory, &got, 0) == norm_success && got == data);
    EXPECT(norm_memory_set_data_handle_v2(memory, other, 0) == norm_success);
    EXPECT(norm_memory_map_data_v2(memory, &got, 0) == norm_success && got == other);
    EXPECT(norm_memory_unmap_data_v2(memory, got, 0) == norm_success);
    got = UNTOUCHED;
    INVALID("index", norm_memory_get_data_handle_v2, (memory, &got, 1));
    INVALID("index", norm_memory_set_data_handle_v2, (memory, data, -1));
    INVALID("index", norm_memory_map_data_v2, (memory, &got, 2));
    INVALID("index", norm_memory_unmap_data_v2, (memory, other, 1));
    INVALID("mapped_ptr", norm_memory_unmap_data_v2, (memory, data, 0));
    INVALID("memory", norm_memory_get_data_handle_v2, (NULL, &got, 0));
    INVALID("memory", norm_memory_set_data_handle_v2, (NULL, data, 0));
    INVALID("memory", norm_memory_map_data_v2, (NULL, &got, 0));
    INVALID("nhandles", norm_memory_create_v2, (&out, desc, engine, 2, handles));
    INVALID("handles", norm_memory_create_v2, (&out, desc, engine, 1, NULL));
    INVALID("memory_desc", norm_memory_create_v2, (&out, NULL, engine, 1, handles));
    EXPECT(got == UNTOUCHED && out == UNTOUCHED);
    MUST(norm_memory_destroy(memory));
    MUST(norm_memory_desc_destroy(desc));
}

/* Layer normalization in layout `tag` has the bits of the plain layout, forward and backward, and
 * zeros the block padding. */
static void normalized(int ndims, const norm_dim_t *dims, norm_format_tag_t plain_tag,
        norm_format_tag_t tag) {
    static const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC};
    unsigned char *data[2][4];
    offsets_t p[2];
    snprintf(expect_case, sizeof expect_case, "%s", norm_fmt_tag2str(tag));
    for (int blocked = 0; blocked < 2; ++blocked) {
        norm_memory_desc_t desc
                = desc_of(ndims, dims, norm_f32, blocked ? tag : plain_tag);
        const size_t size = norm_memory_desc_get_size(desc);
        norm_memory_t memories[4];
        p[blocked] = offsets_of(desc);
        for (int i = 0; i < 4; ++i) {
            data[blocked][i] = malloc(size);
            memset(data[blocked][i], 0xA5, size);
            uint64_t state = 7 + (uint64_t)i;
            for (norm_dim_t e = 0; e < offsets_count(&p[blocked]); ++e) {
                const float x = (float)random_between(&state, -1, 3);
                memcpy(data[blocked][i] + 4 * offsets_flat(&p[blocked], e), &x, 4);
            }
            MUST(norm_memory_create(&memories[i], desc, engine, data[blocked][i]));
        }
        for (int backward = 0; backward < 2; ++backward) {
            norm_primitive_desc_t pd = NULL;
            norm_primitive_t primitive = NULL;
            norm_memory_t variance = NULL, mean = NULL;
            if (backward)
                MUST(norm_layer_normalization_backward_primitive_desc_create(&pd, engine,
                        norm_backward_data, desc, desc, desc, NULL, 1e-5f,
                        norm_use_global_stats, NULL, NULL));
            else
                MUST(norm_layer_normalization_forward_primitive_desc_create(&pd, engine,
                        norm_forward_inference, desc, desc, NULL, 1e-5f, 0, NULL));
            MUST(norm_primitive_create(&primitive, pd));
            const_norm_memory_desc_t stat
                    = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, NORM_ARG_VARIANCE);
            MUST(norm_memory_create(&mean, stat, engine, NORM_MEMORY_ALLOCATE));
            MUST(norm_memory_create(&variance, stat, engine, NORM_MEMORY_ALLOCATE));
            norm_exec_arg_t args[6] = {{NORM_ARG_MEAN, mean}, {NORM_ARG_VARIANCE, variance}};
            for (int i = 0; i < 4; ++i) args[2 + i] = (norm_exec_arg_t) {ids[i], memories[i]};
            EXPECT(norm_primitive_execute(primitive, stream, 6, args) == norm_success);
            MUST(norm_memory_destroy(mean));
            MUST(norm_memory_destroy(variance));
            MUST(norm_primitive_destroy(primitive));
            MUST(norm_primitive_desc_destroy(pd));
        }
        for (int i = 0; i < 4; ++i) MUST(norm_memory_destroy(memories[i]));
        MUST(norm_memory_desc_destroy(desc));
    }
    for (int i = 1; i < 4; i += 2)
        for (norm_dim_t e = 0; e < offsets_count(&p[0]); ++e)
            EXPECT(memcmp(data[0][i] + 4 * offsets_flat(&p[0], e),
                           data[1][i] + 4 * offsets_flat(&p[1], e), 4)
                    == 0);
    norm_dim_t all = 1;
    for (int d = 0; d < ndims; ++d) all *= p[1].padded[d];
    for (norm_dim_t e = 0; e < all; ++e) {
        norm_dims_t index;
        offsets_index(p[1].padded, ndims, e, index);
        int outside = 0;
        for (int d = 0; d < ndims; ++d) outside |= index[d] >= dims[d];
        float x[2];
        memcpy(&x[0], data[1][1] + 4 * offsets_at(&p[1], index), 4);
        memcpy(&x[1], data[1][3] + 4 * offsets_at(&p[1], index), 4);
        if (outside) EXPECT(x[0] == 0 && x[1] == 0);
    }
    for (int i = 0; i < 4; ++i) {
        free(data[0][i]);
        free(data[1][i]);
    }
    expect_case[0] = 0;
}

/* Normalizes a part of a larger tensor in place. The rest is unchanged. */
static void normalized_part(void) {
    const norm_dims_t dims = {6, 40}, part_dims = {3, 24}, offsets = {2, 10};
    float data[240], plain[72];
    norm_memory_desc_t whole = desc_of(2, dims, norm_f32, norm_ab), part = NULL;
    norm_memory_desc_t dense = desc_of(2, part_dims, norm_f32, norm_ab);
    MUST(norm_memory_desc_create_submemory(&part, whole, part_dims, offsets));
    for (int i = 0; i < 240; ++i) data[i] = (float)(i * 37 % 101);
    for (int i = 0; i < 72; ++i) plain[i] = data[(i / 24 + 2) * 40 + i % 24 + 10];
    const norm_memory_desc_t descs[] = {part, dense};
    void *const places[] = {data, plain};
    for (int i = 0; i < 2; ++i) {
        norm_primitive_desc_t pd = NULL;
        norm_primitive_t primitive = NULL;
        norm_memory_t memory = NULL;
        MUST(norm_layer_normalization_forward_primitive_desc_create(&pd, engine,
                norm_forward_inference, descs[i], descs[i], NULL, 1e-5f, 0, NULL));
        MUST(norm_primitive_create(&primitive, pd));
        MUST(norm_memory_create(&memory, descs[i], engine, places[i]));
        const norm_exec_arg_t args[] = {{NORM_ARG_SRC, memory}, {NORM_ARG_DST, memory}};
        EXPECT(norm_primitive_execute(primitive, stream, 2, args) == norm_success);
        MUST(norm_memory_destroy(memory));
        MUST(norm_primitive_destroy(primitive));
        MUST(norm_primitive_desc_destroy(pd));
    }
    for (int i = 0; i < 240; ++i) {
        const int row = i / 40 - 2, col = i % 40 - 10;
        const int inside = row >= 0 && row < 3 && col >= 0 && col < 24;
        EXPECT(data[i] == (inside ? plain[row * 24 + col] : (float)(i * 37 % 101)));
    }
    MUST(norm_memory_desc_destroy(whole));
    MUST(norm_memory_desc_destroy(part));
    MUST(norm_memory_desc_destroy(dense));
}

int main(void) {
    const norm_dims_t two = {5, 39}, three = {19, 3, 33}, four = {2, 20, 3, 5};
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    blocks();
    parts();
    other_dimensions();
    by_letters();
    as_bytes();
    buffers_by_number();
    normalized(2, two, norm_ab, norm_AB16b16a);
    normalized(2, two, norm_ab, norm_BA16a16b4a);
    normalized(3, three, norm_abc, norm_aBc16b);
    normalized(3, three, norm_abc, norm_ABc16b16a);
    normalized(3, three, norm_abc, norm_aCB16b16c);
    normalized(4, four, norm_abcd, norm_nChw16c);
    normalized_part();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("layouts");
}
