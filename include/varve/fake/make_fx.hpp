// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fake/fake_mode.hpp>
#include <varve/trace/make_fx.hpp>

namespace varve {

namespace tracing {
/// Traces run on real values (MX-1).
struct real_t {};
inline constexpr real_t real{};
/// Traces run on fake tensors: nothing of the user's is read, written or drawn.
struct fake_t {};
inline constexpr fake_t fake{};
} // namespace tracing

namespace detail {
/// A trace runs on the fakes of the values that it is given.
class on_fake_values {
public:
  static constexpr bool apart = true;
  on_fake_values() : on_(mode_, false) {}
  template <class T>
  static T value(T const& t) {
    fake_mode& mode = *static_cast<fake_mode*>(this_thread_state.infra[static_cast<int>(infra_mode::fake)].top->object);
    if (is_fake(t)) return t;
    return t.is_wrapped() ? mode.like(t, t.sizes()) : mode.from_tensor(t);
  }

private:
  fake_mode mode_{};
  fake_mode_guard on_;
};
} // namespace detail

/// `make_fx(f, tracing::fake)(x...)`: as `make_fx(f)`, on fake tensors: no operator computes, no data of x are read, no
/// random number is drawn, and what f writes into is left as it was. Branches that C++ takes by values of x are
/// refused, as in every trace; numbers of constants may be read.
template <class F>
auto make_fx(F f, tracing::fake_t) {
  return make_fx_function<F, detail::on_fake_values>(static_cast<F&&>(f));
}
template <class F>
auto make_fx(F f, tracing::real_t) {
  return make_fx_function<F>(static_cast<F&&>(f));
}

} // namespace varve
