// Marks a function whose loops the compiler computes with vectors: compiled for every machine, and for those with AVX2.
// Both give the same bits, because neither fuses a product with a sum.
#pragma once

// Sanitizers are not ready yet when the version is chosen, so instrumented builds have one version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define VOLUME_VECTORIZE __attribute__((optimize("O3"), target_clones("avx2", "default")))
#else
#define VOLUME_VECTORIZE
#endif
