// Marks a function that computes with Lanes: compiled for every machine, and for those with AVX2 and AVX-512. All give
// the same bits, because none fuses a product with a sum.
#pragma once

// Sanitizers are not ready yet when the version is chosen, so instrumented builds have one version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define CODEBOOK_VECTORIZE __attribute__((optimize("O3"), target_clones("avx512f", "avx2", "default")))
#else
#define CODEBOOK_VECTORIZE
#endif
