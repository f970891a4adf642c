// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/random.hpp>
#include <varve/op/create.hpp>

#include <vector>

namespace varve {

/// A counter-based stream of random numbers (Philox 4x32-10). Element i depends only on the seed and i, so that
/// compile-time evaluation, threads and batches agree. Static values draw from an explicit generator:
/// `generator g{42}; auto w = randn<float, 64, 32>(g);`
struct generator {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
};

/// The generator of this thread, which `randn({n})` draws from. `manual_seed` sets it; threads are independent.
inline constinit thread_local generator default_generator{};
namespace detail {
/// The states of the explicit generators that a function drew from, one for each call. When the function runs again, it
/// draws from these states, gets the same numbers, and advances no generator.
struct lent_states {
  std::vector<generator> all{};
};
/// Marks one run of a function that draws from explicit generators: its first run, or a repetition. A function that
/// computes gradients itself may be repeated while its first run is still active.
class lent_states_guard {
public:
  lent_states_guard(lent_states& s, bool again) : states_(s), again_(again), around_(here) { here = this; }
  lent_states_guard(lent_states_guard const&) = delete;
  lent_states_guard& operator=(lent_states_guard const&) = delete;
  ~lent_states_guard() { here = around_; }
  /// Sets `state` to the state of the first run if the function is repeated, and returns whether it is.
  template <class G>
  static bool is_drawn_again(G& state) {
    bool again = false;
    for (lent_states_guard* l = here; l; l = l->around_)
      if (l->again_ && l->next_ < l->states_.all.size()) {
        if (!again) state = l->states_.all[l->next_];
        again = true, ++l->next_;
      }
    for (lent_states_guard* l = here; l; l = l->around_)
      if (!l->again_ && !l->runs_again_inside()) l->states_.all.push_back(state);
    return again;
  }

private:
  bool runs_again_inside() const {
    for (lent_states_guard const* l = here; l != this; l = l->around_)
      if (&l->states_ == &states_) return true;
    return false;
  }
  static inline constinit thread_local lent_states_guard* here = nullptr;
  lent_states& states_;
  bool again_;
  std::size_t next_ = 0;
  lent_states_guard* around_;
};
/// How often this thread set its generator, by `manual_seed` or `set_rng_state`.
inline constinit thread_local std::uint64_t generator_sets = 0;
} // namespace detail
/// Restarts this thread's random numbers from a seed (`torch.manual_seed`). Refused in a traced function.
inline void manual_seed(std::uint64_t seed) {
  ++detail::generator_sets;
  default_generator = {seed, 0};
}

/// Sets this thread's generator to an earlier state for the life of the object, so that the same numbers are drawn
/// again.
class generator_guard {
public:
  explicit generator_guard(generator const& g) : before_(default_generator) { default_generator = g; }
  generator_guard(generator_guard const&) = delete;
  generator_guard& operator=(generator_guard const&) = delete;
  ~generator_guard() { default_generator = before_; }

private:
  generator before_;
};

/// Standard normal numbers; attributes {shape, {dtype}}. Draws from `default_generator`.
inline constexpr struct randn_t {
  static constexpr auto op_name = "randn";
} randn_op{};

template <>
struct rules<randn_t> : detail::factory {
  static constexpr op_kind kind = op_kind::random;
  template <class A>
  static tensor make(A const& at) {
    auto const type = static_cast<dtype>(at[1][0]);
    if (!is_floating(type)) refuse::dtype_is_not_supported("randn", name(type));
    if (is_compact(type)) return detail::made_compact<rules>(at);
    tensor r = detail::fresh(at[0], type);
    generator& g = default_generator;
    on_dtype(type, "randn", [&]<class T>() {
      if constexpr (std::is_floating_point_v<T>)
        g.offset += kernel::fill_normal(r.numel(), static_cast<T*>(r.raw()), g.seed, g.offset);
    });
    return r;
  }
};

/// Returns a tensor of standard normal numbers (`torch.randn`).
template <class = void>
tensor randn(dims const& sizes, dtype type = get_default_dtype()) {
  return detail::create(bind<randn_t>(sizes, dims{static_cast<index_t>(type)}));
}
template <class = void, detail::one_size N, class... A>
  requires detail::listed_sizes<A...>
tensor randn(N n, A... more) {
  detail::sizes_and_dtype const all(n, more...);
  return randn(all.sizes, all.type);
}
/// Returns a static array of standard normal numbers and advances the generator. The same seed yields the same numbers
/// as `manual_seed` with the tensor form.
template <class T, index_t... D>
constexpr array<T, D...> randn(generator& g) {
  array<T, D...> r{};
  g.offset += kernel::fill_normal(r.size(), r.data, g.seed, g.offset);
  return r;
}

/// Returns the state of this thread's generator as a tensor of two int64 (`torch.get_rng_state`). With `set_rng_state`
/// the numbers drawn since can be drawn again.
inline constexpr struct get_rng_state_t {
  static constexpr auto op_name = "get_rng_state";
  template <class = void>
  tensor operator()() const;
} get_rng_state{};
/// Returns the generator stored in a tensor by `get_rng_state`. Throws `dtype_error` or `shape_error` for other
/// tensors.
inline generator as_generator(tensor const& state) {
  if (state.dtype() != dtype::int64) refuse::dtype_is_not_supported("set_rng_state", name(state.dtype()));
  if (!(state.sizes() == dims{2})) refuse::shapes_do_not_match("set_rng_state", state.sizes(), dims{2});
  auto const* const v = static_cast<std::int64_t const*>(state.raw());
  return {static_cast<std::uint64_t>(v[0]), static_cast<std::uint64_t>(v[state.strides()[0]])};
}
/// Restores this thread's generator to a state that `get_rng_state` returned (`torch.set_rng_state`).
inline void set_rng_state(tensor const& state) {
  default_generator = as_generator(state);
  ++detail::generator_sets;
}

template <>
struct rules<get_rng_state_t> : detail::factory {
  static constexpr op_kind kind = op_kind::random;
  static constexpr attributes checked(attributes const& at, meta const*) { return at; } // it has none
  static constexpr meta shape(attributes const&, meta const*, int) { return {dtype::int64, dims{2}}; }
  static tensor make(attributes const&) {
    std::int64_t const v[] = {static_cast<std::int64_t>(default_generator.seed),
                              static_cast<std::int64_t>(default_generator.offset)};
    return tensor::from_data(v, dims{2});
  }
};
template <class>
tensor get_rng_state_t::operator()() const {
  return detail::create(bind<get_rng_state_t>());
}

} // namespace varve
