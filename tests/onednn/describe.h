/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Prints everything that a memory descriptor says about itself.
 */
#ifndef DESCRIBE_H
#define DESCRIBE_H

#include "problem.h"

static void print_dims(const char *name, const_dnnl_memory_desc_t desc, dnnl_query_t what,
        int count) {
    const dnnl_dims_t *dims;
    const dnnl_status_t status = dnnl_memory_desc_query(desc, what, (void *)&dims);
    printf("  %s: %s", name, dnnl_status2str(status));
    for (int i = 0; status == dnnl_success && i < count; ++i)
        printf(" %d", (int)(*dims)[i]);
    printf("\n");
}

static void describe(const char *name, const_dnnl_memory_desc_t desc) {
    dnnl_data_type_t type;
    dnnl_format_kind_t kind;
    dnnl_dim_t offset;
    int ndims, nblks, handles;
    if (!desc) {
        printf("%s: NULL\n", name);
        return;
    }
    OK(dnnl_memory_desc_query(desc, dnnl_query_ndims_s32, &ndims));
    OK(dnnl_memory_desc_query(desc, dnnl_query_data_type, &type));
    OK(dnnl_memory_desc_query(desc, dnnl_query_format_kind, &kind));
    OK(dnnl_memory_desc_query_v2(desc, dnnl_query_num_handles_s32, 0, &handles));
    const int size = (int)dnnl_memory_desc_get_size(desc);
    dnnl_dim_t start = 0;
    if (dnnl_memory_desc_query(desc, dnnl_query_submemory_offset_s64, &start) != dnnl_success)
        start = 0;
    printf("%s%s: %d%s\n", start ? "* bytes of a part: " : "", name, size, start ? "" : " bytes");
    printf("  %d dims, %s, %s, %d buffer\n", ndims, dnnl_dt2str(type), dnnl_fmt_kind2str(kind),
            handles);
    if (ndims == 0) return;
    print_dims("dims", desc, dnnl_query_dims, ndims);
    print_dims("padded", desc, dnnl_query_padded_dims, ndims);
    print_dims("offsets", desc, dnnl_query_padded_offsets, ndims);
    if (kind != dnnl_blocked) return;
    OK(dnnl_memory_desc_query(desc, dnnl_query_submemory_offset_s64, &offset));
    OK(dnnl_memory_desc_query(desc, dnnl_query_inner_nblks_s32, &nblks));
    printf("  offset %d, %d inner blocks\n", (int)offset, nblks);
    print_dims("strides", desc, dnnl_query_strides, ndims);
    print_dims("blocks", desc, dnnl_query_inner_blks, nblks);
    print_dims("indices", desc, dnnl_query_inner_idxs, nblks);
}

#endif
