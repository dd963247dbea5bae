/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Output of the programs: statuses by name, and values with fixed digits. The output of
 * both libraries is compared literally, so a value must not be where a difference in
 * the last bit changes a printed digit. Such a value is printed as EDGE, which fails
 * the test; choose other data.
 *
 * A line "* reason: case: result" marks a known difference; main.rs lists the reasons
 * and what each library prints.
 */
#ifndef PRINT_H
#define PRINT_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

/* Calls that must succeed. */
#define OK(call) \
    do { \
        const dnnl_status_t ok_status = (call); \
        if (ok_status != dnnl_success) { \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                    dnnl_status2str(ok_status)); \
            exit(1); \
        } \
    } while (0)

/* Prints the status of a call with a name. */
#define STATUS(name, call) printf("%s: %s\n", name, dnnl_status2str(call))

/* Prints a value with `digits` decimals. */
static inline void print_value(double value, int digits) {
    const double unit = pow(10, digits), scaled = value * unit;
    const double from_edge = fabs(scaled - floor(scaled) - 0.5);
    if (!isfinite(value))
        printf(" %s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    else if (from_edge < 2e-3 && fabs(scaled) * 1e-6 >= from_edge)
        printf(" EDGE");
    else
        /* No negative zero. */
        printf(" %.*f", digits, floor(scaled + 0.5) / unit + 0.0);
}

static inline void print_values(
        const char *name, const float *values, int count, int digits) {
    printf("%s:", name);
    for (int i = 0; i < count; ++i)
        print_value(values[i], digits);
    printf("\n");
}

#endif
