// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/threads.hpp>
#include <varve/kernel/simd.hpp>

/// @file
/// Varve has two forms: headers only, and headers with a compiled library. A program must use one of them. Its
/// translation units and the library must agree on the size of SIMD registers and on threads. Otherwise the program
/// does not link. (LLVM's linker, and clang with `-flto`, do not detect a mixture of forms.)
namespace varve::detail {

#if VARVE_COMPILED
__attribute__((used)) inline thread_local constinit int units_of_headers_only_beside_units_of_the_compiled_library = 0;

/// Defined in the library for its own flags only, so that a translation unit compiled with other flags does not link.
template <std::size_t RegisterBytes, fusion::threads Threads>
void compiled_library_for_registers_of();
#if !VARVE_DEFINES
__attribute__((used)) constexpr auto library_of_this_unit =
    &compiled_library_for_registers_of<sizeof(kernel::batch<float>), fusion::threads_of_this_build>;
#endif
#else
__attribute__((used)) inline constinit int units_of_headers_only_beside_units_of_the_compiled_library = 0;
#endif

} // namespace varve::detail
