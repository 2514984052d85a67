"""The compiler of kernels and its cache, SIMD vectors, random numbers, sums."""
