// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Version and build switches. This is the only header of varve that defines macros.

#ifdef VARVE_VERSION_MAJOR
// clang-format off: it would indent the second line, which belongs to the text
#error "varve is included twice in this unit, as the single header and as separate headers or from two \
places; include one of them"
// clang-format on
#include <varve-included-twice> // does not exist: compilation ends here, before a thousand redefinition errors
#endif

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error "varve needs C++20: compile with -std=c++20 (CMake: target_compile_features(your_target PRIVATE cxx_std_20))"
#include <varve-needs-cxx20> // does not exist: compilation ends here
#endif
#if defined(__clang__) ? __clang_major__ < 14 : defined(__GNUC__) && __GNUC__ < 12
#error "varve needs g++ 12 or clang 14, or later ones: choose another compiler (CMake: -DCMAKE_CXX_COMPILER=g++-12)"
#include <varve-needs-another-compiler> // does not exist: compilation ends here
#endif

/// A program can set these switches in a header of this name on the include path. The header must be the same for all
/// translation units. With the CMake target it is not needed.
#if defined(__has_include)
#if __has_include(<varve_user_config.hpp>)
#include <varve_user_config.hpp>
#endif
#endif

/// Version of the library, read by CMake and by users: major.minor.patch.
#define VARVE_VERSION_MAJOR 0
#define VARVE_VERSION_MINOR 1
#define VARVE_VERSION_PATCH 0
/// The version as one number, for comparisons (10000 * major + 100 * minor + patch), and as text.
#define VARVE_VERSION (VARVE_VERSION_MAJOR * 10000 + VARVE_VERSION_MINOR * 100 + VARVE_VERSION_PATCH)
#define VARVE_VERSION_STRING "0.1.0"

/// 1 if the SIMD kernels of xsimd are used, 0 for scalar code. The CMake target sets it; otherwise it is 1 if
/// <xsimd/xsimd.hpp> is found.
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

/// 1 if Boost.Hana is found, 0 otherwise. In the umbrella header only `stack_of` needs it; with 0 that is left out.
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

/// 1 if OpenMP threads share the long loops of fused programs. The default is 1 where the compiler uses OpenMP
/// (`-fopenmp`), and 0 elsewhere, where it must stay 0. All translation units of a program must agree. The CMake option
/// of this name ensures both.
#ifndef VARVE_USE_OPENMP
#ifdef _OPENMP
#define VARVE_USE_OPENMP 1
#else
#define VARVE_USE_OPENMP 0
#endif
#endif

/// 1 if threads of the standard library share the long loops of fused programs, where OpenMP is not used. The default
/// is 0. All translation units of a program must agree; the CMake option of this name ensures that.
#ifndef VARVE_USE_THREADS
#define VARVE_USE_THREADS 0
#endif

/// The features of this build, as 0 or 1. They are called like functions, so that a misspelt name is an error:
/// `#if VARVE_HAS_XSIMD()`.
#define VARVE_HAS_XSIMD() VARVE_USE_XSIMD
#define VARVE_HAS_OPENMP() VARVE_USE_OPENMP
#define VARVE_HAS_THREADS() (VARVE_USE_OPENMP || VARVE_USE_THREADS)
/// 1 if exceptions are enabled. Under `-fno-exceptions` an error that would be thrown is passed to the program's error
/// handler (`set_error_handler`), and then the program ends. All translation units of a program must agree.
#if defined(__cpp_exceptions) && __cpp_exceptions
#define VARVE_HAS_EXCEPTIONS() 1
#else
#define VARVE_HAS_EXCEPTIONS() 0
#endif
#define VARVE_HAS_HANA() VARVE_USE_HANA

/// 1 if memory blocks of tensors are recycled through a list for each thread. 0 under the address and thread
/// sanitizers, which could not detect reads of freed memory otherwise.
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

/// 1 in programs that link the compiled library (the target `varve::compiled` sets it), or in which one translation
/// unit defines VARVE_IMPLEMENTATION. Code that depends on no type of the program is then only declared in its units
/// and compiled once. 0, the default, in header-only programs. All translation units of a program must agree; mixing
/// them fails at link time.
#ifndef VARVE_COMPILED
#ifdef VARVE_IMPLEMENTATION
#define VARVE_COMPILED 1
#else
#define VARVE_COMPILED 0
#endif
#endif
/// Which parts of the library a translation unit defines. 0: none, in programs that link the library. 1: all that it
/// uses, in header-only programs. The sources of the library use 2 for functions, 3 for calls by name, 4 for operators
/// of the umbrella and 5 for other operators. 6: functions and operators of the umbrella, in the unit that defines
/// VARVE_IMPLEMENTATION.
#ifndef VARVE_DEFINES
#ifdef VARVE_IMPLEMENTATION
#define VARVE_DEFINES 6
#else
#define VARVE_DEFINES !VARVE_COMPILED
#endif
#endif
/// 1 where the code behind run-time tracing and compilation (`make_fx`, `compile`, `aot_function`, `export_program`) is
/// defined. This code is separated from its callers by type-erased functions. It is defined in header-only programs, in
/// one source of the library, and in the unit that defines VARVE_IMPLEMENTATION.
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
/// True if the translation unit defines all functions of the library, used or not. The second macro is true if it
/// defines operators of the library.
#define VARVE_DEFINES_FUNCTIONS() (VARVE_DEFINES == 2 || VARVE_DEFINES == 6)
#define VARVE_DEFINES_OPERATORS() (VARVE_DEFINES == 1 || VARVE_DEFINES >= 4)
/// Marks functions of the compiled library. Their headers declare them first, and define them at the end where the unit
/// defines them.
#if VARVE_DEFINES_FUNCTIONS()
#define VARVE_LIBRARY inline __attribute__((used))
#else
#define VARVE_LIBRARY inline
#endif
/// Marks constructors and destructors of the compiled library. Compilers emit all variants of these where they are not
/// inline. Also marks the first virtual function of a class that is not defined in the class: the class's table of
/// functions is emitted with it, which clang omits otherwise.
#if VARVE_DEFINES_FUNCTIONS()
#define VARVE_LIBRARY_MEMBER
#else
#define VARVE_LIBRARY_MEMBER inline
#endif

/// 1 if g++ precompiles the header. The target `varve::pch` sets it.
#ifndef VARVE_PRECOMPILED
#define VARVE_PRECOMPILED 0
#endif

/// Marks objects of class type that are initialized before all objects of the program at namespace scope, in any unit
/// or library. These objects register operators by name. Without the mark, a program that calls operators by name
/// before `main` could find some missing.
///
/// Mach-O files have no such order: there the objects of a unit are initialized in the order of their definitions. g++
/// 12 crashes on precompiled headers with such objects, so VARVE_PRECOMPILED leaves the mark out.
#if defined(__has_attribute)
#if __has_attribute(init_priority) && !defined(__APPLE__) && !VARVE_PRECOMPILED
#define VARVE_FIRST __attribute__((init_priority(200)))
#endif
#endif
#ifndef VARVE_FIRST
#define VARVE_FIRST
#endif

/// Forces inlining where a kernel's speed depends on it. Without the optimizer nothing is forced: fused programs would
/// take gigabytes of memory to compile.
#if defined(__OPTIMIZE__)
#define VARVE_INLINE inline __attribute__((always_inline))
#else
#define VARVE_INLINE inline
#endif
/// VARVE_PART marks a part of a fused program, VARVE_WHOLE the function that all its parts are inlined into.
///
/// In g++ a function with forced inlining is optimized together with all that is inlined into it. This is repeated for
/// each of a dozen such nested functions. Calls that are not forced (xsimd's functions) are inlined last of all.
/// Compiling took up to twice as long. `flatten` instead copies parts that are optimized already. In clang `flatten`
/// affects direct calls only, and a function with forced inlining disappears at once.
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
/// Marks a plain loop over elements that must become vector instructions at any level of optimization. clang vectorizes
/// it without help; g++ 12 vectorizes conversions from -O3 on.
#if defined(__OPTIMIZE__) && !defined(__clang__)
#define VARVE_VECTORIZED __attribute__((noinline, optimize("O3")))
#else
#define VARVE_VECTORIZED __attribute__((noinline))
#endif
/// Keeps error paths and drivers out of the callers' code.
#define VARVE_COLD __attribute__((noinline, cold))
/// Keeps a driver out of its callers' code.
#define VARVE_NOINLINE __attribute__((noinline))
