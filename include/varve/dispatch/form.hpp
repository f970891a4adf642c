// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/threads.hpp>
#include <varve/kernel/simd.hpp>

/// @file
/// Varve has two forms: headers only, and declarations in headers with the compiled library beside them. A program has
/// one of them, and its units and the library agree in the size of SIMD registers and in their threads; else it is not
/// linked. (LLVM's linker, and clang with `-flto`, overlook a mixture of forms.)
namespace varve::detail {

#if VARVE_COMPILED
__attribute__((used)) inline thread_local constinit int units_of_headers_only_beside_units_of_the_compiled_library = 0;

/// In the library, for its own flags: a unit that was compiled with others asks for another one.
template <std::size_t RegisterBytes, loop::threads Threads>
void compiled_library_for_registers_of();
#if !VARVE_DEFINES
__attribute__((used)) constexpr auto library_of_this_unit =
    &compiled_library_for_registers_of<sizeof(kernel::batch<float>), loop::threads_of_this_build>;
#endif
#else
__attribute__((used)) inline constinit int units_of_headers_only_beside_units_of_the_compiled_library = 0;
#endif

} // namespace varve::detail
