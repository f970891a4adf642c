// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Version and build switches: the only header of varve that defines macros.

#ifdef VARVE_VERSION_MAJOR
// clang-format off: it would indent the second line, which belongs to the text
#error "varve is included twice in this unit, as the single header and as separate headers or from two \
places; include one of them"
// clang-format on
#include <varve-included-twice> // is nowhere: compilation ends here, before a thousand redefinitions
#endif

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error "varve needs C++20: compile with -std=c++20 (CMake: target_compile_features(your_target PRIVATE cxx_std_20))"
#include <varve-needs-cxx20> // is nowhere: compilation ends here
#endif
#if defined(__clang__) ? __clang_major__ < 14 : defined(__GNUC__) && __GNUC__ < 12
#error "varve needs g++ 12 or clang 14, or later ones: choose another compiler (CMake: -DCMAKE_CXX_COMPILER=g++-12)"
#include <varve-needs-another-compiler> // is nowhere: compilation ends here
#endif

/// A program's own switches, for all its units alike: a header of this name on the include path. CMake's target needs
/// none.
#if defined(__has_include)
#if __has_include(<varve_user_config.hpp>)
#include <varve_user_config.hpp>
#endif
#endif

/// Version of the library, read by CMake and by users: major.minor.patch.
#define VARVE_VERSION_MAJOR 0
#define VARVE_VERSION_MINOR 1
#define VARVE_VERSION_PATCH 0
/// ... as one number, for comparisons: 10000 * major + 100 * minor + patch; and as text.
#define VARVE_VERSION (VARVE_VERSION_MAJOR * 10000 + VARVE_VERSION_MINOR * 100 + VARVE_VERSION_PATCH)
#define VARVE_VERSION_STRING "0.1.0"

/// 1 when the SIMD kernels of xsimd are used, 0 for the scalar path. The CMake target decides it; without a decision
/// the header is looked for.
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

/// 1 where Boost.Hana is found, of which the headers of the umbrella need `stack_of` alone; 0 leaves that out.
#ifndef VARVE_USE_HANA
#if defined(__has_include)
#if __has_include(<boost/hana/tuple.hpp>)
#define VARVE_USE_HANA 1
#endif
#endif
#endif
#ifndef VARVE_USE_HANA
#define VARVE_USE_HANA 0
#endif

/// 1 when threads of OpenMP share the long loops of fused programs; by default where the compiler uses OpenMP
/// (`-fopenmp`), without which it cannot be 1. All units of a program must agree. The CMake option of this name sees to
/// both.
#ifndef VARVE_USE_OPENMP
#ifdef _OPENMP
#define VARVE_USE_OPENMP 1
#else
#define VARVE_USE_OPENMP 0
#endif
#endif

/// 1 when threads of the standard library share them, where OpenMP is not used; 0 by default. All units of a program
/// must agree. The CMake option of this name sees to that.
#ifndef VARVE_USE_THREADS
#define VARVE_USE_THREADS 0
#endif

/// What this build has, as 0 or 1. They are called, so that a misspelt one is an error: `#if VARVE_HAS_XSIMD()`.
#define VARVE_HAS_XSIMD() VARVE_USE_XSIMD
#define VARVE_HAS_OPENMP() VARVE_USE_OPENMP
#define VARVE_HAS_THREADS() (VARVE_USE_OPENMP || VARVE_USE_THREADS)
/// ... under `-fno-exceptions`, what would be thrown goes to the program's error handler (`set_error_handler`), and
/// then ends the program. All units of a program must agree.
#if defined(__cpp_exceptions) && __cpp_exceptions
#define VARVE_HAS_EXCEPTIONS() 1
#else
#define VARVE_HAS_EXCEPTIONS() 0
#endif
#define VARVE_HAS_HANA() VARVE_USE_HANA

/// 1 when blocks of tensors are recycled through a per-thread list; 0 under the address sanitizer, which could not see
/// stale reads otherwise.
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

/// 1 in units of a program that links the compiled library (the target `varve::compiled` says so), or one unit of which
/// defines VARVE_IMPLEMENTATION: code that depends on no type of the program is declared in its units and compiled
/// once. 0, the default, in a program that is headers only. All units of a program must agree; the linker refuses a
/// mixture.
#ifndef VARVE_COMPILED
#ifdef VARVE_IMPLEMENTATION
#define VARVE_COMPILED 1
#else
#define VARVE_COMPILED 0
#endif
#endif
/// What a unit defines of the library: 0 nothing (units of programs that link it), 1 all that it uses (programs of
/// headers only). Sources of the library: 2 functions, 3 calls by name, 4 operators of the umbrella, 5 operators beside
/// it. 6 functions and operators of the umbrella, in the one unit that defines VARVE_IMPLEMENTATION.
#ifndef VARVE_DEFINES
#ifdef VARVE_IMPLEMENTATION
#define VARVE_DEFINES 6
#else
#define VARVE_DEFINES !VARVE_COMPILED
#endif
#endif
/// 1 where what traces and compiles functions at run time (`make_fx`, `compile`, `aot_function`, `export_program`) is
/// defined behind the door at which functions are erased: in programs of headers only, in that one source of the
/// library which emits it, and in the unit that defines VARVE_IMPLEMENTATION.
#ifndef VARVE_DEFINES_CAPTURE
#ifdef VARVE_IMPLEMENTATION
#define VARVE_DEFINES_CAPTURE 1
#else
#define VARVE_DEFINES_CAPTURE !VARVE_COMPILED
#endif
#endif
#if defined(VARVE_IMPLEMENTATION) && !VARVE_COMPILED
#error "varve: VARVE_IMPLEMENTATION is for programs all units of which are compiled with -DVARVE_COMPILED=1"
#endif
/// True if the unit defines each function of the library, used or not, and operators of the library.
#define VARVE_DEFINES_FUNCTIONS() (VARVE_DEFINES == 2 || VARVE_DEFINES == 6)
#define VARVE_DEFINES_OPERATORS() (VARVE_DEFINES == 1 || VARVE_DEFINES >= 4)
/// Marks functions of the compiled library: their headers declare them first, and define them at the end where they do.
#if VARVE_DEFINES_FUNCTIONS()
#define VARVE_LIBRARY inline __attribute__((used))
#else
#define VARVE_LIBRARY inline
#endif
/// Marks constructors and destructors of the compiled library, of which compilers emit all forms where they are not
/// inline.
#if VARVE_DEFINES_FUNCTIONS()
#define VARVE_LIBRARY_MEMBER
#else
#define VARVE_LIBRARY_MEMBER inline
#endif

/// Is the header precompiled by g++? The target `varve::pch` says so.
#ifndef VARVE_PRECOMPILED
#define VARVE_PRECOMPILED 0
#endif

/// Marks objects of classes that are initialized before the objects of programs at namespace scope, in whatever unit or
/// library these are: what makes operators known by name. Without it a program that calls them before `main` would find
/// some missing. (Of Mach-O files, which have no such order, those of a unit are initialized by their place in it.
/// g++ 12 breaks down on headers with such objects that it has precompiled: VARVE_PRECOMPILED leaves them out.)
#if defined(__has_attribute)
#if __has_attribute(init_priority) && !defined(__APPLE__) && !VARVE_PRECOMPILED
#define VARVE_FIRST __attribute__((init_priority(200)))
#endif
#endif
#ifndef VARVE_FIRST
#define VARVE_FIRST
#endif

/// Forces inlining where a kernel's speed depends on it. Without the optimizer nothing does, and fused programs would
/// take gigabytes to compile.
#if defined(__OPTIMIZE__)
#define VARVE_INLINE inline __attribute__((always_inline))
#else
#define VARVE_INLINE inline
#endif
/// A part of a fused program, and the function that all its parts are inlined into. In g++ a function inlined by force
/// is optimized with all that is inlined into it, once for each of a dozen such functions within each other, and what
/// they call that is not forced (xsimd's functions) is inlined last of all: compiling took up to twice as long.
/// `flatten` copies parts that are optimized already; in clang it concerns direct calls only, and each function inlined
/// by force is gone at once.
#if defined(__OPTIMIZE__) && defined(__clang__)
#define VARVE_PART __attribute__((always_inline))
#define VARVE_WHOLE
#elif defined(__OPTIMIZE__)
#define VARVE_PART
#define VARVE_WHOLE __attribute__((flatten))
#else
#define VARVE_PART
#define VARVE_WHOLE
#endif
/// A plain loop over elements that is to become vector instructions at any level of optimization, as clang has it; g++
/// 12 does so for conversions from -O3 on.
#if defined(__OPTIMIZE__) && !defined(__clang__)
#define VARVE_VECTORIZED __attribute__((noinline, optimize("O3")))
#else
#define VARVE_VECTORIZED __attribute__((noinline))
#endif
/// Keeps error paths and drivers out of the callers' code.
#define VARVE_COLD __attribute__((noinline, cold))
/// Keeps a driver out of its callers' code.
#define VARVE_NOINLINE __attribute__((noinline))
