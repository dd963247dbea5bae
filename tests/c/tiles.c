/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Tile instructions (AMX): used where the processor has them and the system allows them; otherwise
 * the next implementation has the same bits. Another configuration of the calling thread's tiles
 * has no effect on results. The permission is asked for once in a process, so each case has its own.
 */
#define _GNU_SOURCE
#include "sdpa.h"

#if defined(__linux__) && defined(__x86_64__)

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* of arch_prctl */
enum { QUERIES = 40, KEYS = 300, HEADS = 4, GROUPS = 2, KEY = 64, VALUE = 32 };

static const char tiles_name[] = "simd:avx512_amx";

/* In memory that all processes share. */
typedef struct {
    char names[2][32]; /* of the implementations forward and backward */
    int has_row, has_avx512; /* whether there is one for tiles, and one for AVX-512 */
    uint16_t dst[HEADS * QUERIES * VALUE], diff_q[HEADS * QUERIES * KEY];
    uint16_t diff_k[GROUPS * KEYS * KEY], diff_v[GROUPS * KEYS * VALUE];
} result_t;

static norm_engine_t engine;
static norm_stream_t stream;

/* Takes ownership of the descriptor. The names that follow its own are those that it could have. */
static void name_of(norm_primitive_desc_t pd, char *to, result_t *result) {
    const char *name = NULL;
    MUST(norm_primitive_desc_query(pd, norm_query_impl_info_str, 0, (void *)&name));
    snprintf(to, sizeof result->names[0], "%s", name);
    do {
        MUST(norm_primitive_desc_query(pd, norm_query_impl_info_str, 0, (void *)&name));
        result->has_row |= strcmp(name, tiles_name) == 0;
        result->has_avx512 |= strcmp(name, "simd:avx512") == 0;
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
}

/* A prefill of bf16 and its gradients. `before` is called before each execution. */
static void compute(result_t *result, void (*before)(void)) {
    const setup_t setup = {.batch = 1, .heads = HEADS, .groups = GROUPS, .queries = QUERIES, .keys = KEYS,
            .key_size = KEY, .value_size = VALUE, .mask_type = norm_attn_mask_bottom_right,
            .data_type = norm_bf16};
    uint64_t state = 3;
    norm_primitive_desc_t pd = NULL;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    sdpa_t p = sdpa_make(&setup, engine, &state);
    tensor_t diff_dst = tensor_like(p.dst.desc, engine), diff_q = tensor_like(p.q.desc, engine);
    tensor_t diff_k = tensor_like(p.k.desc, engine), diff_v = tensor_like(p.v.desc, engine);
    tensor_fill_random(&diff_dst, &state, -2, 2);
    const norm_exec_arg_t args[] = {{NORM_ARG_QUERIES, p.q.memory}, {NORM_ARG_KEYS, p.k.memory},
            {NORM_ARG_VALUES, p.v.memory}, {NORM_ARG_DST, p.dst.memory},
            {NORM_ARG_WORKSPACE, p.stats.memory}, {NORM_ARG_DIFF_DST, diff_dst.memory},
            {NORM_ARG_DIFF_QUERIES, diff_q.memory}, {NORM_ARG_DIFF_KEYS, diff_k.memory},
            {NORM_ARG_DIFF_VALUES, diff_v.memory}};
    for (int is_forward = 1; is_forward >= 0; --is_forward) {
        if (is_forward)
            MUST(sdpa_forward(&pd, &p, engine));
        else
            MUST(norm_sdpa_backward_primitive_desc_create(&pd, engine, diff_q.desc, diff_k.desc,
                    diff_v.desc, diff_dst.desc, p.q.desc, p.k.desc, p.v.desc, p.dst.desc, NULL, NULL,
                    setup.mask_type, norm_window_none, 0, 0, p.scale, 0, 0, NULL, NULL));
        if (before != NULL) before();
        MUST(sdpa_execute(&p, pd, engine, stream, 9, args));
        name_of(pd, result->names[!is_forward], result);
    }
    EXPECT(p.dst.bytes == sizeof result->dst && diff_q.bytes == sizeof result->diff_q);
    EXPECT(diff_k.bytes == sizeof result->diff_k && diff_v.bytes == sizeof result->diff_v);
    memcpy(result->dst, p.dst.data, sizeof result->dst);
    memcpy(result->diff_q, diff_q.data, sizeof result->diff_q);
    memcpy(result->diff_k, diff_k.data, sizeof result->diff_k);
    memcpy(result->diff_v, diff_v.data, sizeof result->diff_v);
    tensor_t *all[] = {&diff_dst, &diff_q, &diff_k, &diff_v};
    for (int i = 0; i < 4; ++i) tensor_free(all[i]);
    sdpa_free(&p);
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
}

static int same(const result_t *a, const result_t *b) {
    return memcmp(a->dst, b->dst, sizeof a->dst) == 0 && memcmp(a->diff_q, b->diff_q, sizeof a->diff_q) == 0
            && memcmp(a->diff_k, b->diff_k, sizeof a->diff_k) == 0
            && memcmp(a->diff_v, b->diff_v, sizeof a->diff_v) == 0;
}

/* Runs a function in a process of its own, and returns its answer, or -1 if it crashed. */
static int alone(int (*function)(result_t *), result_t *result) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const int answer = function(result);
        _exit(expect_failed != 0 ? 99 : answer);
    }
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int permitted(result_t *unused) {
    (void)unused;
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

/* The system refuses. The answer is whether it can be made to. */
static int refused(result_t *result) {
    struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, REQUEST_PERMISSION, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 0;
    EXPECT(!permitted(NULL) && errno == EPERM);
    compute(result, NULL);
    return 1;
}

/* The operand of LDTILECFG and STTILECFG. */
typedef struct {
    unsigned char palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    unsigned char rows[16];
} shapes_t;

/* As another library would: two small tiles, and six that do not exist. */
static void configure(void) {
    const shapes_t shapes = {.palette = 1, .row_bytes = {8, 12}, .rows = {3, 5}};
    __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
}

/* The other library's own work: a tile of 3 rows of 8 bytes is loaded and stored. */
static int works(void) {
    unsigned char from[3][64], to[3][64];
    memset(to, 0, sizeof to);
    for (int i = 0; i < 3 * 64; ++i) from[i / 64][i % 64] = (unsigned char)i;
    configure();
    __asm__ volatile("tileloadd (%0,%2,1), %%tmm0\n\ttilestored %%tmm0, (%1,%2,1)\n\ttilerelease"
                     :
                     : "r"(from), "r"(to), "r"((size_t)64)
                     : "memory");
    int equal = 1;
    for (int row = 0; row < 3; ++row)
        equal &= memcmp(from[row], to[row], 8) == 0 && to[row][8] == 0;
    return equal;
}

/* Another library has configured tiles, before the first use and before each execution. */
static int configured(result_t *result) {
    shapes_t left;
    EXPECT(permitted(NULL));
    MUST(norm_set_num_threads(1)); /* the thread that calls computes everything */
    configure();
    compute(result, configure);
    /* An execution on tiles released them; another left them alone. */
    const int on_tiles = strcmp(result->names[1], tiles_name) == 0;
    __asm__ volatile("sttilecfg %0" : "=m"(left));
    EXPECT(left.palette == !on_tiles && left.rows[0] == (on_tiles ? 0 : 3));
    EXPECT(works());
    return 1;
}

static int has_tiles(void) {
    char line[8192];
    FILE *file = fopen("/proc/cpuinfo", "r");
    int found = 0;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        found = strncmp(line, "flags", 5) == 0 && strstr(line, " amx_bf16") != NULL;
    if (file != NULL) fclose(file);
    return found;
}

int main(void) {
    result_t *results = mmap(NULL, 3 * sizeof *results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!EXPECT(results != MAP_FAILED)) return expect_summary("tiles");
    const int granted = has_tiles() && alone(permitted, NULL) == 1;
    const int refusal = alone(refused, &results[1]);
    EXPECT(refusal == 0 || refusal == 1);
    if (granted) EXPECT(alone(configured, &results[2]) == 1);
    compute(&results[0], NULL);
    printf("%s, %s\n", results[0].names[0], results[0].names[1]);
    if (refusal == 1) {
        printf("refused: %s, %s\n", results[1].names[0], results[1].names[1]);
        EXPECT(!results[1].has_row && same(&results[1], &results[0]));
    } else
        printf("skipped: the system has no seccomp filters\n");
    if (granted && results[0].has_avx512) {
        for (int i = 0; i < 2; ++i) EXPECT(strcmp(results[0].names[i], tiles_name) == 0);
        for (int i = 0; i < 2; ++i) EXPECT(strcmp(results[2].names[i], tiles_name) == 0);
    } else
        printf("skipped: there are no tiles, or no kernels for them\n");
    if (granted) EXPECT(same(&results[2], &results[0]));
    return expect_summary("tiles");
}

#else

int main(void) {
    printf("skipped: neither Linux nor x86-64\n");
    EXPECT(1);
    return expect_summary("tiles");
}

#endif
