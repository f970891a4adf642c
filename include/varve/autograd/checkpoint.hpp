// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <varve/autograd/backward.hpp>
#include <varve/autograd/function.hpp>
#include <varve/autograd/saved_tensors_hooks.hpp>
#include <varve/op/randn.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vjp.hpp>

namespace varve {

namespace detail {
/// `checkpoint` on static values, and on tensors under transforms: a custom function that saves its arguments, and in its backward runs again.
template <class F>
struct recomputed_function {
  [[no_unique_address]] F f;
  constexpr auto forward(auto const&... x) const { return f(x...); }
  static constexpr auto context(auto const& ctx, auto const& inputs, auto const&) {
    return std::apply([&](auto const&... x) { return ctx.save_for_backward(x...).save_for_forward(x...); }, inputs);
  }
  template <class... G>
  constexpr auto backward(auto& ctx, G const&... g) const {
    auto const run = std::apply([&](auto const&... x) { return varve::vjp(f, x...); }, ctx.saved());
    if constexpr (is_tree_node<std::remove_cvref_t<decltype(run.first)>>) return run.second(std::make_tuple(g...));
    else return run.second((g, ...));
  }
  constexpr auto jvp(auto& ctx, auto const&... t) const {
    return varve::jvp(f, ctx.saved_for_forward(), std::make_tuple(t...)).second;
  }
};
struct recomputed {
  static constexpr bool generate_vmap_rule = true;
};

/// The generator of random numbers as it was: recomputation draws the same ones (CK-3).
class generator_guard {
public:
  explicit generator_guard(generator const& g) : before_(default_generator) { default_generator = g; }
  generator_guard(generator_guard const&) = delete;
  generator_guard& operator=(generator_guard const&) = delete;
  ~generator_guard() { default_generator = before_; }

private:
  generator before_;
};
/// One checkpointed call: what its forward pass would have kept, made again at the first need.
struct checkpoint_region {
  struct place {
    dtype type;
    dims sizes;
  };
  std::vector<place> places;
  std::vector<tensor> values; // made again; each is given out once
  std::uint64_t run = 0;      // of the backward pass they were made for
  generator random;
  virtual ~checkpoint_region() = default;
  virtual void run_again() = 0;

  tensor value(std::size_t k) {
    auto* const pass = backward_run<>::current();
    std::uint64_t const now = pass ? pass->id() : 0;
    if (values.empty() || run != now || !values[k].defined()) {
      values.clear();
      recompute();
      run = now;
    }
    tensor t = values[k];
    if (!pass || !pass->keeps()) values[k] = tensor();
    return t;
  }

private:
  struct enough {};
  void recompute() {
    auto keep = [this](tensor const& t) -> int {
      std::size_t const k = values.size();
      if (k == places.size()) throw enough{};
      if (t.dtype() != places[k].type || !(t.sizes() == places[k].sizes))
        throw autograd_error(("varve: checkpoint: the recomputed value " + std::to_string(k) + " is " + name(t.dtype()) + to_string(t.sizes()) + ", but was " + name(places[k].type) + to_string(places[k].sizes) +
                              " in the forward pass; the function must do the same each time")
                                 .c_str());
      values.push_back(t.alias());
      if (values.size() == places.size()) throw enough{}; // early stop (CK-2)
      return 0;
    };
    try {
      generator_guard const same(random);
      set_grad_enabled const on(true);
      saved_tensors_hooks const hooks(keep, [](int) { return tensor(); });
      run_again();
    } catch (enough const&) {
    }
    if (values.size() != places.size())
      throw autograd_error(("varve: checkpoint: a different number of values was saved in the recomputation: " + std::to_string(values.size()) + ", but " + std::to_string(places.size()) + " in the forward pass").c_str());
  }
};
} // namespace detail

/// `checkpoint(f, x...)` is f(x...), but nothing that f computes is kept for the backward pass: f runs again then, up to the last value needed, with the same random numbers
/// (CK-1..5). On tensors it is f itself that must do the same each time (`autograd_error` otherwise); it may capture leaves. Nests to any depth, and works under `vmap`, `jvp`
/// and, as a custom function, under `grad` and on static values. Memory: that of the arguments; time: f once more.
template <class F, class... X>
constexpr auto checkpoint(F const& f, X const&... x) {
  if constexpr (!(std::is_same_v<X, tensor> || ...)) {
    using R = detail::recomputed_function<F>;
    return custom_function_call<detail::recomputed, R>{R{f}}(detail::plain(x)...);
  } else {
    if (!is_grad_enabled()) return f(x...);
    for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
      if (l->records) return f(x...); // a level of grad keeps what it needs
    struct region final : detail::checkpoint_region {
      F f;
      std::tuple<X...> args;
      region(F const& g, X const&... v) : f(g), args(v...) {}
      void run_again() override { (void)std::apply(f, args); }
    };
    auto const r = std::make_shared<region>(f, x...);
    r->random = default_generator;
    auto pack = [r](tensor const& t) {
      r->places.push_back({t.dtype(), t.sizes()});
      return r->places.size() - 1;
    };
    saved_tensors_hooks const hooks(pack, [r](std::size_t k) { return r->value(k); });
    return f(x...);
  }
}

} // namespace varve
