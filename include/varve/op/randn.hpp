// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/random.hpp>
#include <varve/op/create.hpp>

namespace varve {

/// A counter-based stream of random numbers (Philox 4x32-10): element i depends on the seed and i alone, so that the compiler, threads and batches agree.
/// Static values draw from one of their own: `generator g{42}; auto w = randn<float, 64, 32>(g);`
struct generator {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
};

/// The generator behind this thread's `randn({n})` (`torch.manual_seed` sets it; threads are independent).
inline constinit thread_local generator default_generator{};
/// Starts this thread's random numbers anew.
inline void manual_seed(std::uint64_t seed) { default_generator = {seed, 0}; }

/// Standard normal numbers; attributes {shape, {dtype}}. Draws from `default_generator`.
inline constexpr struct randn_t {
  static constexpr auto op_name = "randn";
} randn_op{};

template <>
struct rules<randn_t> : detail::factory {
  static constexpr op_kind kind = op_kind::random;
  static tensor make(attributes const& at) {
    auto const type = static_cast<dtype>(at[1][0]);
    if (!is_floating(type)) refuse::dtype_is_not_supported("randn", name(type));
    tensor r = detail::fresh(at[0], type);
    generator& g = default_generator;
    on_dtype(type, "randn", [&]<class T>() {
      if constexpr (std::is_floating_point_v<T>) g.offset += kernel::fill_normal(r.numel(), static_cast<T*>(r.raw()), g.seed, g.offset);
    });
    return r;
  }
};

/// A tensor of standard normal numbers.
template <class = void>
tensor randn(dims const& sizes, dtype type = get_default_dtype()) {
  return detail::create(bind<randn_t>(sizes, dims{static_cast<index_t>(type)}));
}
/// A static array of standard normal numbers; advances the generator. The same seed gives the numbers that `manual_seed` and the tensor form give.
template <class T, index_t... D>
constexpr array<T, D...> randn(generator& g) {
  array<T, D...> r{};
  g.offset += kernel::fill_normal(r.size(), r.data, g.seed, g.offset);
  return r;
}

} // namespace varve
