/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Explanations in C++; part of wrapper.cpp.
 */
#ifndef WRAPPER_EXPLAIN_H
#define WRAPPER_EXPLAIN_H

static void explanations(const norm::engine &engine) {
    const memory::desc rows({2, 64}, dt::f32, tag::ab), row({64}, dt::f32, tag::a);
    memory src(rows, engine), scale(row, engine);
    float *x = src.map_data<float>(), *w = scale.map_data<float>();
    for (int i = 0; i < 128; ++i) x[i] = 0.005f;
    for (int i = 0; i < 64; ++i) w[i] = 2;
    src.unmap_data(x);
    scale.unmap_data(w);
    const norm_explanation_t found = norm::explain(src, memory(), 1e-5f);
    EXPECT(std::fabs(found.ratio - 0.8451543) < 1e-6 && found.rows == 2 && found.scale_rms == 1);
    EXPECT(near(norm::explain(src, scale, 1e-5f, flags::rms_norm, 1).rms_out, 2 * found.rms_out));
    const std::vector<norm_remedy_t> remedies = norm::explain_remedies(src, memory(), 1e-5f);
    EXPECT(remedies.size() == NORM_REMEDIES && remedies[5].kind == norm_remedy_fold_ratio);
    EXPECT(norm::to_string(found).find("epsilon_dominates") != std::string::npos);
    EXPECT(norm::to_string(found, remedies).find("fold_ratio") != std::string::npos);
    EXPECT(norm::to_string(norm_warning_zero_rows) == "zero_rows");
    EXPECT(norm::to_string(norm_remedy_clip_src) == "clip_src");
    THROWS(norm_invalid_arguments, "row", norm::explain(src, memory(), 1, flags::rms_norm, 2));
    EXPECT(norm::data_type_epsilon(dt::bf16) == 0.0078125);
}

#endif
