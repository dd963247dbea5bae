/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Reorder between layouts and types, with attributes, compared with the formula. The
 * bits are the same at every level and for every number of threads.
 */
#include "element.h"
#include "levels.h"
#include "number.h"
#include "offsets.h"
#include "refused.h"

static norm_engine_t engine;
static norm_stream_t stream;
static norm_cpu_isa_t levels[LEVELS_MAX];
static int level_count;

static const norm_data_type_t types[] = {norm_f32, norm_f64, norm_bf16, norm_f16, norm_s32,
        norm_s64, norm_s8, norm_u8, norm_f8_e5m2, norm_f8_e4m3, norm_e8m0};
#define TYPES 11

static norm_memory_desc_t desc_of(
        int ndims, const norm_dim_t *dims, norm_data_type_t type, norm_format_tag_t tag) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, ndims, dims, type, tag));
    return desc;
}

static void run(norm_memory_desc_t src_desc, norm_memory_desc_t dst_desc,
        const_norm_primitive_attr_t attr, void *src, void *dst, int extra,
        const norm_exec_arg_t *more) {
    norm_primitive_desc_t pd = NULL;
    norm_primitive_t primitive = NULL;
    norm_memory_t from = NULL, to = NULL;
    MUST(norm_reorder_primitive_desc_create(&pd, src_desc, engine, dst_desc, engine, attr));
    MUST(norm_primitive_create(&primitive, pd));
    MUST(norm_memory_create(&from, src_desc, engine, src));
    MUST(norm_memory_create(&to, dst_desc, engine, dst));
    norm_exec_arg_t args[8] = {{NORM_ARG_SRC, from}, {NORM_ARG_DST, to}};
    for (int i = 0; i < extra; ++i) args[2 + i] = more[i];
    EXPECT(norm_primitive_execute(primitive, stream, 2 + extra, args) == norm_success);
    MUST(norm_memory_destroy(from));
    MUST(norm_memory_destroy(to));
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
}

/* Small numbers, exact in both types, arrive at the right offsets in every layout, and block
 * padding is zero. */
static void between_layouts(int ndims, const norm_dim_t *dims, norm_format_tag_t from,
        norm_format_tag_t to, norm_data_type_t from_type, norm_data_type_t to_type) {
    norm_memory_desc_t src_desc = desc_of(ndims, dims, from_type, from);
    norm_memory_desc_t dst_desc = desc_of(ndims, dims, to_type, to);
    const offsets_t in = offsets_of(src_desc), out = offsets_of(dst_desc);
    const size_t size = norm_memory_desc_get_size(dst_desc);
    const size_t to_size = norm_data_type_size(to_type);
    unsigned char *src = malloc(norm_memory_desc_get_size(src_desc));
    unsigned char *dst = malloc(size), *expected = calloc(size, 1);
    memset(src, 0x33, norm_memory_desc_get_size(src_desc));
    snprintf(expect_case, sizeof expect_case, "%s:%s %s:%s", norm_dt2str(from_type),
            norm_fmt_tag2str(from), norm_dt2str(to_type), norm_fmt_tag2str(to));
    for (norm_dim_t i = 0; i < offsets_count(&in); ++i) {
        const int powers = from_type == norm_e8m0 || to_type == norm_e8m0;
        const double x = powers ? ldexp(1, (int)(i * 5 % 7)) : (double)(i * 7 % 9);
        number_put(from_type, src, offsets_flat(&in, i), x);
        number_put(to_type, expected, offsets_flat(&out, i), x);
    }
    /* Bytes outside the tensor are not written. */
    norm_dim_t all = 1;
    for (int d = 0; d < ndims; ++d) all *= out.padded[d];
    unsigned char *described = calloc(size, 1);
    for (norm_dim_t i = 0; i < all; ++i) {
        norm_dims_t index;
        offsets_index(out.padded, ndims, i, index);
        memset(described + offsets_at(&out, index) * to_size, 1, to_size);
    }
    for (size_t i = 0; i < size; ++i)
        if (!described[i]) expected[i] = 0xA5;
    for (int level = 0; level <= level_count; ++level) {
        const int reference = level == level_count;
        if (!reference) MUST(norm_set_max_cpu_isa(levels[level]));
        for (int threads = 1; threads <= 3; threads += 2) {
            MUST(norm_set_num_threads(threads));
            memset(dst, 0xA5, size);
            run(src_desc, dst_desc, NULL, src, dst, 0, NULL);
            EXPECT(memcmp(dst, expected, size) == 0);
        }
        MUST(norm_set_max_cpu_isa(norm_cpu_isa_default));
    }
    MUST(norm_set_num_threads(0));
    free(src);
    free(dst);
    free(expected);
    free(described);
    MUST(norm_memory_desc_destroy(src_desc));
    MUST(norm_memory_desc_destroy(dst_desc));
    expect_case[0] = 0;
}

static void layouts(int emulated) {
    static const norm_format_tag_t of_3[] = {norm_abc, norm_acb, norm_bac, norm_bca, norm_cab,
            norm_cba, norm_aBc16b, norm_ABc16b16a, norm_Abc4a};
    const norm_dims_t ragged = {5, 19, 3}, whole = {16, 32, 4}, empty = {3, 0, 2};
    for (int from = 0; from < 9; from += emulated ? 3 : 1)
        for (int to = 0; to < 9; to += emulated ? 2 : 1) {
            between_layouts(3, ragged, of_3[from], of_3[to], norm_f32, norm_bf16);
            between_layouts(3, whole, of_3[from], of_3[to], norm_s8, norm_f32);
            between_layouts(3, whole, of_3[from], of_3[to], norm_f16, norm_f16);
        }
    for (int from = 0; from < TYPES && !emulated; ++from)
        for (int to = 0; to < TYPES; ++to) {
            between_layouts(3, ragged, norm_abc, norm_abc, types[from], types[to]);
            between_layouts(3, ragged, norm_abc, norm_cba, types[from], types[to]);
        }
    between_layouts(3, empty, norm_abc, norm_ABc16b16a, norm_f32, norm_f16);
    if (emulated) return;
    /* Large enough for several threads. */
    const norm_dims_t rows = {300, 700};
    between_layouts(2, rows, norm_ab, norm_ab, norm_f32, norm_bf16);
    between_layouts(2, rows, norm_ab, norm_ba, norm_f32, norm_f32);
    between_layouts(2, rows, norm_ba, norm_ab, norm_u8, norm_f16);
    const norm_dims_t many = {2, 1, 3, 2, 1, 2, 2, 1, 2, 2, 1, 2};
    between_layouts(12, many, norm_abcdefghijkl, norm_abcdefghijlk, norm_f32, norm_s32);
}

/* dst = (src_scale*(src - src_zero) + sum*dst)/dst_scale + dst_zero, with numbers for which every
 * step is exact. */
static void attributes(int src_mask, int dst_mask, int points, int sum) {
    const norm_dims_t dims = {4, 6, 5};
    norm_memory_desc_t src_desc = desc_of(3, dims, norm_s8, norm_abc);
    norm_memory_desc_t dst_desc = desc_of(3, dims, norm_s32, norm_cab);
    const offsets_t in = offsets_of(src_desc), out = offsets_of(dst_desc);
    int8_t src[120];
    int32_t dst[120], before[120];
    norm_primitive_attr_t attr = NULL;
    norm_post_ops_t list = NULL;
    float scales[2][120];
    int32_t zeros[2] = {points ? -3 : 0, points ? 11 : 0};
    norm_memory_t memories[4];
    norm_exec_arg_t more[4];
    int count = 0;
    snprintf(expect_case, sizeof expect_case, "masks %d %d points %d sum %d", src_mask, dst_mask,
            points, sum);
    for (int i = 0; i < 120; ++i) {
        src[offsets_flat(&in, i)] = (int8_t)(i - 60);
        before[i] = dst[i] = 4 * i;
        scales[0][i] = (float)(1 << (i % 3 + 2));
        scales[1][i] = i % 2 ? 0.5f : 2.f;
    }
    MUST(norm_primitive_attr_create(&attr));
    for (int side = 0; side < 2; ++side) {
        const int mask = side ? dst_mask : src_mask, arg = side ? NORM_ARG_DST : NORM_ARG_SRC;
        norm_dim_t n = 1;
        for (int d = 0; d < 3; ++d)
            if (mask >> d & 1) n *= dims[d];
        norm_memory_desc_t of_scales = desc_of(1, &n, norm_f32, norm_a), of_zero = NULL;
        MUST(norm_primitive_attr_set_scales_mask(attr, arg, mask));
        MUST(norm_memory_create(&memories[count], of_scales, engine, scales[side]));
        more[count] = (norm_exec_arg_t) {NORM_ARG_ATTR_SCALES | arg, memories[count]};
        ++count;
        if (points) {
            n = 1;
            of_zero = desc_of(1, &n, norm_s32, norm_a);
            MUST(norm_primitive_attr_set_zero_points_mask(attr, arg, 0));
            MUST(norm_memory_create(&memories[count], of_zero, engine, &zeros[side]));
            more[count] = (norm_exec_arg_t) {NORM_ARG_ATTR_ZERO_POINTS | arg, memories[count]};
            ++count;
            MUST(norm_memory_desc_destroy(of_zero));
        }
        MUST(norm_memory_desc_destroy(of_scales));
    }
    if (sum) {
        MUST(norm_post_ops_create(&list));
        MUST(norm_post_ops_append_sum(list, 0.5f, 0, norm_data_type_undef));
        MUST(norm_primitive_attr_set_post_ops(attr, list));
        MUST(norm_post_ops_destroy(list));
    }
    run(src_desc, dst_desc, attr, src, dst, count, more);
    for (int i = 0; i < 120; ++i) {
        norm_dims_t index;
        offsets_index(dims, 3, i, index);
        int at[2] = {0, 0};
        for (int side = 0; side < 2; ++side)
            for (int d = 0; d < 3; ++d)
                if ((side ? dst_mask : src_mask) >> d & 1)
                    at[side] = at[side] * (int)dims[d] + (int)index[d];
        const size_t place = offsets_flat(&out, i);
        double x = scales[0][at[0]] * (double)(i - 60 - zeros[0]);
        if (sum) x += 0.5 * before[place];
        EXPECT(dst[place] == nearbyint(x / scales[1][at[1]] + zeros[1]));
    }
    for (int i = 0; i < count; ++i) MUST(norm_memory_destroy(memories[i]));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(src_desc));
    MUST(norm_memory_desc_destroy(dst_desc));
    expect_case[0] = 0;
}

/* Rounding to nearest even, and values out of range. */
static void rounding(void) {
    static const float values[] = {0.5f, 1.5f, -0.5f, -2.5f, 127.4f, 127.5f, 1e9f, -1e9f,
            (float)INFINITY, -(float)INFINITY, (float)NAN, 254.5f, 3e9f};
    static const int8_t as_s8[] = {0, 2, 0, -2, 127, 127, 127, -128, 127, -128, 0, 127, 127};
    static const uint8_t as_u8[] = {0, 2, 0, 0, 127, 128, 255, 0, 255, 0, 0, 254, 255};
    static const int32_t as_s32[] = {0, 2, 0, -2, 127, 128, 1000000000, -1000000000, INT32_MAX,
            INT32_MIN, 0, 254, INT32_MAX};
    const norm_dim_t n = 13;
    unsigned char got[13 * 4];
    float copy[13];
    memcpy(copy, values, sizeof copy);
    norm_memory_desc_t src = desc_of(1, &n, norm_f32, norm_a);
    norm_memory_desc_t s8 = desc_of(1, &n, norm_s8, norm_a), u8 = desc_of(1, &n, norm_u8, norm_a);
    norm_memory_desc_t s32 = desc_of(1, &n, norm_s32, norm_a);
    norm_memory_desc_t e4m3 = desc_of(1, &n, norm_f8_e4m3, norm_a);
    norm_memory_desc_t e5m2 = desc_of(1, &n, norm_f8_e5m2, norm_a);
    for (int level = 0; level < level_count; ++level) {
        MUST(norm_set_max_cpu_isa(levels[level]));
        run(src, s8, NULL, copy, got, 0, NULL);
        EXPECT(memcmp(got, as_s8, 13) == 0);
        run(src, u8, NULL, copy, got, 0, NULL);
        EXPECT(memcmp(got, as_u8, 13) == 0);
        run(src, s32, NULL, copy, got, 0, NULL);
        EXPECT(memcmp(got, as_s32, sizeof as_s32) == 0);
        /* NaN, because there is no infinity. 254.5 is between 240 and 256. */
        run(src, e4m3, NULL, copy, got, 0, NULL);
        EXPECT(got[0] == 0x30 && got[6] == 0x7f && got[7] == 0xff && (got[10] & 0x7f) == 0x7f);
        EXPECT(number_get(norm_f8_e4m3, got, 11) == 256 && number_get(norm_f8_e4m3, got, 4) == 128);
        run(src, e5m2, NULL, copy, got, 0, NULL);
        EXPECT(got[6] == 0x7c && got[7] == 0xfc && isnan(number_get(norm_f8_e5m2, got, 10)));
        EXPECT(number_get(norm_f8_e5m2, got, 11) == 256);
    }
    MUST(norm_set_max_cpu_isa(norm_cpu_isa_default));
    MUST(norm_memory_desc_destroy(src));
    MUST(norm_memory_desc_destroy(s8));
    MUST(norm_memory_desc_destroy(u8));
    MUST(norm_memory_desc_destroy(s32));
    MUST(norm_memory_desc_destroy(e4m3));
    MUST(norm_memory_desc_destroy(e5m2));
}

/* Each 8-bit code has the value of its definition and round-trips. */
static void float8_codes(void) {
    const norm_dim_t n = 256;
    uint8_t codes[256], again[256];
    float numbers[256];
    for (int i = 0; i < 256; ++i) codes[i] = (uint8_t)i;
    for (int e5m2 = 0; e5m2 < 2; ++e5m2) {
        const norm_data_type_t type = e5m2 ? norm_f8_e5m2 : norm_f8_e4m3;
        norm_memory_desc_t narrow = desc_of(1, &n, type, norm_a);
        norm_memory_desc_t wide = desc_of(1, &n, norm_f32, norm_a);
        run(narrow, wide, NULL, codes, numbers, 0, NULL);
        run(wide, narrow, NULL, numbers, again, 0, NULL);
        for (int i = 0; i < 256; ++i) {
            const double want = number_get(type, codes, (size_t)i);
            EXPECT(isnan(want) ? isnan(numbers[i]) : numbers[i] == want);
            EXPECT(isnan(want) ? isnan(number_get(type, again, (size_t)i)) : again[i] == i);
        }
        MUST(norm_memory_desc_destroy(narrow));
        MUST(norm_memory_desc_destroy(wide));
    }
}

#define CODES_MAX 65536

/* Elements of a type: every code of a short one; for a long one, numbers around those of every
 * type and around their midpoints, and random codes. */
static size_t elements_of(norm_data_type_t type, unsigned char *data) {
    static const norm_data_type_t floats[]
            = {norm_f8_e5m2, norm_f8_e4m3, norm_f16, norm_bf16, norm_f32};
    static const uint32_t steps[] = {1, 1, 61, 61, 4000037};
    static const double bounds[] = {127, 128, 255, 2147483647, 2147483648, 9007199254740992,
            4503599627370496.5, 9223372036854775807.0, 1e300, 5e-324};
    const size_t size = norm_data_type_size(type);
    size_t n = 0;
    if (size <= 2) {
        for (uint32_t code = 0; code < 1u << 8 * size; ++code, ++n)
            memcpy(data + size * n, &code, size);
        return n;
    }
    double numbers[3] = {NAN, INFINITY, 0};
    for (int i = 0; i < 3; ++i) number_put(type, data, n++, numbers[i]);
#define AROUND(x) \
    for (int sign = -1; sign < 2; sign += 2) { \
        number_put(type, data, n++, sign * (x)); \
        number_put(type, data, n++, sign * nextafter(x, 0)); \
        number_put(type, data, n++, sign * nextafter(x, INFINITY)); \
    }
    for (int f = 0; f < 5; ++f) {
        const number_format_t format = number_format(floats[f]);
        for (uint32_t code = 0; code <= format.largest; code += steps[f]) {
            const double number = number_size(format, code), next = number_size(format, code + 1);
            AROUND(number)
            AROUND(number + (next - number) / 2)
        }
    }
    for (int power = -130; power < 130; ++power) AROUND(ldexp(1, power))
    for (int i = 0; i < 10; ++i) {
        AROUND(bounds[i])
        AROUND(bounds[i] + 0.5)
    }
    for (int quarter = 0; quarter < 1100; ++quarter) AROUND(quarter / 4.0)
#undef AROUND
    uint64_t state = 1;
    for (int i = 0; i < 4096; ++i) {
        uint64_t code = (uint64_t)random_bits(&state) << 32;
        code |= random_bits(&state);
        if (type == norm_s64 || type == norm_s32) code = (code >> i % 64) * (i & 64 ? 1 : -1);
        memcpy(data + size * n++, &code, size);
    }
    EXPECT(n > 20000 && n <= CODES_MAX);
    return n;
}

/* How many scales a reorder has, all of them 1. With any, equal types are converted, too; one for
 * each element needs the reference implementation. */
typedef enum { NO_SCALE, ONE_SCALE, A_SCALE_EACH, SCALES } scale_kind_t;

/* Elements arrive as the nearest ones of the other type, or with equal types and no scale as they
 * are. */
static void pair_of_types(norm_data_type_t from, norm_data_type_t to, scale_kind_t scale,
        unsigned char *src, norm_dim_t n) {
    static unsigned char dst[8 * CODES_MAX], expected[8 * CODES_MAX];
    static float ones[CODES_MAX];
    const size_t size = norm_data_type_size(to);
    const norm_dim_t factors = scale == A_SCALE_EACH ? n : 1;
    norm_memory_desc_t src_desc = desc_of(1, &n, from, norm_a);
    norm_memory_desc_t dst_desc = desc_of(1, &n, to, norm_a);
    norm_memory_desc_t of_scales = desc_of(1, &factors, norm_f32, norm_a);
    norm_primitive_attr_t attr = NULL;
    norm_memory_t scales = NULL;
    snprintf(expect_case, sizeof expect_case, "%s to %s, scales %d", norm_dt2str(from),
            norm_dt2str(to), scale);
    for (norm_dim_t i = 0; i < factors; ++i) ones[i] = 1;
    for (size_t i = 0; i < (size_t)n; ++i) {
        /* A neutral zero point is added: -0 becomes 0. */
        const double x = number_get(from, src, i) + (scale ? 0.0 : -0.0);
        number_put(to, expected, i, x);
    }
    if (!scale && from == to) memcpy(expected, src, size * (size_t)n);
    MUST(norm_memory_create(&scales, of_scales, engine, ones));
    const norm_exec_arg_t more[] = {{NORM_ARG_ATTR_SCALES | NORM_ARG_SRC, scales}};
    if (scale) {
        MUST(norm_primitive_attr_create(&attr));
        MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_SRC, scale == A_SCALE_EACH));
    }
    for (int level = 0; level < (scale == A_SCALE_EACH ? 1 : level_count); ++level) {
        MUST(norm_set_max_cpu_isa(levels[level]));
        run(src_desc, dst_desc, attr, src, dst, scale != NO_SCALE, more);
        size_t wrong = 0;
        for (size_t i = 0; i < (size_t)n; ++i) {
            if (memcmp(dst + size * i, expected + size * i, size) == 0) continue;
            const double got = number_get(to, dst, i), want = number_get(to, expected, i);
            const int copied = !scale && from == to;
            if (!copied && isnan(got) && isnan(want)) continue;
            if (wrong++ == 0)
                fprintf(stderr, "%s: %.17g is %.17g instead of %.17g\n", expect_case,
                        number_get(from, src, i), got, want);
        }
        EXPECT(wrong == 0);
    }
    MUST(norm_set_max_cpu_isa(norm_cpu_isa_default));
    if (attr != NULL) MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_destroy(scales));
    MUST(norm_memory_desc_destroy(src_desc));
    MUST(norm_memory_desc_destroy(dst_desc));
    MUST(norm_memory_desc_destroy(of_scales));
    expect_case[0] = 0;
}

static void pairs_of_types(void) {
    static unsigned char src[8 * CODES_MAX];
    for (int from = 0; from < TYPES; ++from) {
        const norm_dim_t n = (norm_dim_t)elements_of(types[from], src);
        for (int to = 0; to < TYPES; ++to)
            for (int scale = 0; scale < SCALES; ++scale)
                pair_of_types(types[from], types[to], (scale_kind_t)scale, src, n);
    }
}

static void queries_and_refusals(void) {
    const norm_dims_t dims = {4, 6}, other = {4, 7}, zero = {0, 1};
    norm_memory_desc_t src = desc_of(2, dims, norm_f32, norm_ab), overlapping = NULL;
    norm_memory_desc_t dst = desc_of(2, dims, norm_s8, norm_ba);
    norm_memory_desc_t wrong = desc_of(2, other, norm_f32, norm_ab);
    norm_memory_desc_t any = desc_of(2, dims, norm_f32, norm_format_tag_any);
    norm_primitive_desc_t pd = NULL, out = UNTOUCHED;
    norm_primitive_attr_t attr = NULL;
    MUST(norm_memory_desc_create_with_strides(&overlapping, 2, dims, norm_f32, zero));
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_SRC, 2));
    MUST(norm_reorder_primitive_desc_create(&pd, src, engine, dst, engine, attr));

    norm_primitive_kind_t kind = norm_undefined_primitive;
    norm_engine_t its = NULL;
    norm_prop_kind_t prop = norm_backward;
    float number = 7;
    EXPECT(norm_primitive_desc_query(pd, norm_query_primitive_kind, 0, &kind) == norm_success);
    EXPECT(kind == norm_reorder && strcmp(norm_prim_kind2str(kind), "reorder") == 0);
    EXPECT(norm_primitive_desc_query(pd, norm_query_reorder_src_engine, 0, &its) == norm_success);
    EXPECT(its != NULL);
    its = NULL;
    EXPECT(norm_primitive_desc_query(pd, norm_query_reorder_dst_engine, 0, &its) == norm_success);
    EXPECT(its != NULL);
    REFUSED(norm_unimplemented, "what", norm_primitive_desc_query,
            (pd, norm_query_prop_kind, 0, &prop));
    REFUSED(norm_unimplemented, "what", norm_primitive_desc_query,
            (pd, norm_query_epsilon_f32, 0, &number));
    REFUSED(norm_unimplemented, "what", norm_primitive_desc_query,
            (pd, norm_query_alpha_f32, 0, &number));
    EXPECT(norm_memory_desc_equal(norm_primitive_desc_query_md(pd, norm_query_src_md, 0), src));
    EXPECT(norm_memory_desc_equal(norm_primitive_desc_query_md(pd, norm_query_dst_md, 0), dst));
    EXPECT(norm_primitive_desc_query_s32(pd, norm_query_num_of_inputs_s32, 0) == 1);
    EXPECT(norm_primitive_desc_query_s32(pd, norm_query_num_of_outputs_s32, 0) == 1);
    const_norm_memory_desc_t scales = norm_primitive_desc_query_md(
            pd, norm_query_exec_arg_md, NORM_ARG_ATTR_SCALES | NORM_ARG_SRC);
    EXPECT(norm_memory_desc_get_size(scales) == 6 * 4);

    /* A missing scale, one of another type, and one with too few elements. */
    norm_primitive_t primitive = NULL;
    norm_memory_t from = NULL, to = NULL, bad = NULL;
    norm_memory_desc_t descs[2];
    const norm_dim_t six = 6, five = 5;
    descs[0] = desc_of(1, &six, norm_s32, norm_a);
    descs[1] = desc_of(1, &five, norm_f32, norm_a);
    MUST(norm_primitive_create(&primitive, pd));
    MUST(norm_memory_create(&from, src, engine, NORM_MEMORY_ALLOCATE));
    MUST(norm_memory_create(&to, dst, engine, NORM_MEMORY_ALLOCATE));
    norm_exec_arg_t args[3] = {{NORM_ARG_SRC, from}, {NORM_ARG_DST, to}};
    INVALID("NORM_ARG_ATTR_SCALES", norm_primitive_execute, (primitive, stream, 2, args));
    for (int i = 0; i < 2; ++i) {
        MUST(norm_memory_create(&bad, descs[i], engine, NORM_MEMORY_ALLOCATE));
        args[2] = (norm_exec_arg_t) {NORM_ARG_ATTR_SCALES | NORM_ARG_SRC, bad};
        INVALID("NORM_ARG_SRC", norm_primitive_execute, (primitive, stream, 3, args));
        MUST(norm_memory_destroy(bad));
        MUST(norm_memory_desc_destroy(descs[i]));
    }
    MUST(norm_memory_destroy(from));
    MUST(norm_memory_destroy(to));
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));

    INVALID("reorder_primitive_desc", norm_reorder_primitive_desc_create,
            (NULL, src, engine, dst, engine, NULL));
    INVALID("src_desc", norm_reorder_primitive_desc_create,
            (&out, NULL, engine, dst, engine, NULL));
    INVALID("dst_desc", norm_reorder_primitive_desc_create,
            (&out, src, engine, NULL, engine, NULL));
    INVALID("src_engine", norm_reorder_primitive_desc_create,
            (&out, src, NULL, dst, engine, NULL));
    INVALID("dst_engine", norm_reorder_primitive_desc_create,
            (&out, src, engine, dst, NULL, NULL));
    INVALID("dst_desc", norm_reorder_primitive_desc_create,
            (&out, src, engine, wrong, engine, NULL));
    INVALID("dst_desc", norm_reorder_primitive_desc_create,
            (&out, src, engine, any, engine, NULL));
    INVALID("src_desc", norm_reorder_primitive_desc_create,
            (&out, any, engine, src, engine, NULL));
    INVALID("dst_desc", norm_reorder_primitive_desc_create,
            (&out, src, engine, overlapping, engine, NULL));
    MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_SRC, 4));
    INVALID("attr", norm_reorder_primitive_desc_create, (&out, src, engine, dst, engine, attr));
    MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_SRC, 0));
    MUST(norm_primitive_attr_set_zero_points_mask(attr, NORM_ARG_SRC, 0));
    INVALID("attr", norm_reorder_primitive_desc_create, (&out, src, engine, dst, engine, attr));
    EXPECT(out == UNTOUCHED);
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(src));
    MUST(norm_memory_desc_destroy(dst));
    MUST(norm_memory_desc_destroy(wrong));
    MUST(norm_memory_desc_destroy(any));
    MUST(norm_memory_desc_destroy(overlapping));
}

/* With the argument "emulated", for memory checkers, fewer cases. */
int main(int argc, char **argv) {
    const int emulated = argc > 1 && strcmp(argv[1], "emulated") == 0;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    level_count = levels_here(levels);
    layouts(emulated);
    for (int src_mask = 0; src_mask < 8; ++src_mask)
        for (int dst_mask = 0; dst_mask < 8; dst_mask += 3)
            for (int more = 0; more < 4; ++more)
                attributes(src_mask, dst_mask, more & 1, more >> 1);
    rounding();
    float8_codes();
    if (!emulated) pairs_of_types();
    queries_and_refusals();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("reorder");
}
