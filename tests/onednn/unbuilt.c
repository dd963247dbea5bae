/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Functions that libnorm does not implement return an error, set a message and
 * write nothing.
 */
#include "problem.h"

#define UNBUILT(name, call) STATUS("* not built: " name, call)

int main(void) {
    const dnnl_dims_t dims = {2, 2, 4, 4}, weights_dims = {2, 2, 3, 3}, one = {1, 1}, none = {0, 0};
    dnnl_primitive_desc_t problem = NULL;
    begin();
    dnnl_memory_desc_t image = with_tag(4, dims, dnnl_f32, dnnl_abcd);
    dnnl_memory_desc_t weights = with_tag(4, weights_dims, dnnl_f32, dnnl_abcd);
    dnnl_memory_desc_t matrix = with_tag(2, dims, dnnl_f32, dnnl_ab);
    UNBUILT("shuffle", dnnl_shuffle_forward_primitive_desc_create(
                               &problem, engine, dnnl_forward_inference, image, image, 1, 2, NULL));
    UNBUILT("matmul", dnnl_matmul_primitive_desc_create(
                              &problem, engine, matrix, matrix, NULL, matrix, NULL));
    UNBUILT("convolution", dnnl_convolution_forward_primitive_desc_create(&problem, engine,
                                   dnnl_forward_inference, dnnl_convolution_direct, image, weights,
                                   NULL, image, one, none, one, one, NULL));
    OK(dnnl_memory_desc_destroy(image));
    OK(dnnl_memory_desc_destroy(weights));
    OK(dnnl_memory_desc_destroy(matrix));
    end();
    return 0;
}
