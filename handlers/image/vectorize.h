// Marks a loop-heavy function for the compiler to vectorise, at any optimisation level of the build.
#pragma once

// On x86 with GCC the function is compiled twice, for every machine and for those with AVX2, and one version is chosen
// when the program is loaded. Fused multiply-add stays off, so both give the same bits. This choice does not work with
// sanitizers (the resolver runs before they are ready), so instrumented builds have one version.
#if defined(__clang__) || !defined(__GNUC__)
#define MILLRACE_VECTORIZE
#elif defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define MILLRACE_VECTORIZE __attribute__((optimize("O3"), target_clones("avx2", "default")))
#else
#define MILLRACE_VECTORIZE __attribute__((optimize("O3")))
#endif
