// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Version and build switches: the only header of varve that defines macros.

/// Version of the library, read by CMake and by users: major.minor.patch.
#define VARVE_VERSION_MAJOR 0
#define VARVE_VERSION_MINOR 1
#define VARVE_VERSION_PATCH 0

/// 1 when the SIMD kernels of xsimd are used, 0 for the scalar path. The CMake target decides it; without a decision the header is looked for.
#ifndef VARVE_USE_XSIMD
#if defined(__has_include)
#if __has_include(<xsimd/xsimd.hpp>)
#define VARVE_USE_XSIMD 1
#endif
#endif
#endif
#ifndef VARVE_USE_XSIMD
#define VARVE_USE_XSIMD 0
#endif

/// 1 when threads of OpenMP share the long loops of fused programs; by default where the compiler uses OpenMP (`-fopenmp`), without which it cannot be 1. All units of a program must
/// agree. The CMake option of this name sees to both.
#ifndef VARVE_USE_OPENMP
#ifdef _OPENMP
#define VARVE_USE_OPENMP 1
#else
#define VARVE_USE_OPENMP 0
#endif
#endif

/// 1 when blocks of tensors are recycled through a per-thread list; 0 under the address sanitizer, which could not see stale reads otherwise.
#ifndef VARVE_RECYCLE_BLOCKS
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VARVE_RECYCLE_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VARVE_RECYCLE_BLOCKS 0
#endif
#endif
#endif
#ifndef VARVE_RECYCLE_BLOCKS
#define VARVE_RECYCLE_BLOCKS 1
#endif

/// Forces inlining where a kernel's speed depends on it. Without the optimizer nothing does, and fused programs would take gigabytes to compile.
#if defined(__OPTIMIZE__)
#define VARVE_INLINE inline __attribute__((always_inline))
#else
#define VARVE_INLINE inline
#endif
/// Keeps error paths and drivers out of the callers' code.
#define VARVE_COLD __attribute__((noinline, cold))
/// Keeps a driver out of its callers' code.
#define VARVE_NOINLINE __attribute__((noinline))
