// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/backward.hpp>
#include <varve/autograd/function.hpp>
#include <varve/autograd/saved_tensors_hooks.hpp>
#include <varve/autograd/traced_checkpoint.hpp>
#include <varve/interpreter/mode_guard.hpp>
#include <varve/op/randn.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vjp.hpp>

#include <memory>

namespace varve {

namespace detail {
inline constinit thread_local bool checkpoint_stops_early = true;
}
/// A scope that sets whether checkpoints stop recomputing at the last value that is needed, which is the default.
/// Without stopping, a function that saves more values than in the first run is detected.
class set_checkpoint_early_stop {
public:
  explicit set_checkpoint_early_stop(bool on) : before_(detail::checkpoint_stops_early) {
    detail::checkpoint_stops_early = on;
  }
  set_checkpoint_early_stop(set_checkpoint_early_stop const&) = delete;
  set_checkpoint_early_stop& operator=(set_checkpoint_early_stop const&) = delete;
  ~set_checkpoint_early_stop() { detail::checkpoint_stops_early = before_; }

private:
  bool before_;
};
/// Two modes for `checkpoint`. `forward` is on while the function first runs, `again` while it is recomputed. Either
/// may be `none`. `selective_checkpoint` makes such a pair.
template <class Forward, class Again>
struct checkpoint_contexts {
  Forward forward;
  Again again;
};
template <class Forward, class Again>
checkpoint_contexts(Forward, Again) -> checkpoint_contexts<Forward, Again>;

namespace detail {
/// A scope in which a mode is on; `none` has no effect.
template <class M>
struct context_guard : mode_guard<M> {
  explicit context_guard(M& m) : mode_guard<M>(m) {}
};
template <>
struct context_guard<none_t const> {
  explicit context_guard(none_t const&) {}
};
template <>
struct context_guard<none_t> : context_guard<none_t const> {
  using context_guard<none_t const>::context_guard;
};
/// The implementation of `checkpoint` for static values, and for tensors under transforms: a custom function that saves
/// its arguments and runs the function again in its backward pass.
template <class F>
struct recomputed_function {
  static constexpr bool is_its_text = true;
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

/// True if a function owns everything that it uses. References captured by other functions may dangle when `grad` runs
/// its backward pass.
template <class F>
inline constexpr bool owns_captures = std::is_empty_v<F> || std::is_function_v<std::remove_pointer_t<F>>;
template <class F, class... C>
inline constexpr bool owns_captures<closure_t<F, C...>> = owns_captures<F> && ((is_tree_node<C> || value<C>) && ...);
/// Returns the level of `grad` that is the only active transform, or null.
template <class T = void>
layer* one_level_of_grad() {
  layer* const top = this_thread_state.transforms.top;
  return top && !top->below && top->kind == &grad_kind<T> ? top : nullptr;
}
/// A layer that stands for the level of `grad` when a function runs again. The backward pass runs below the level, and
/// a pullback under whatever transforms are active when it is called. Values of the level are recognized by its number,
/// even after it has ended.
template <class T>
struct level_again {
  interpreter_layer<grad_interpreter<dependent<dynamic_level, T>>> stands_for;
  explicit level_again(layer const& l) : stands_for(*l.kind, this_thread_state.transforms) {
    stands_for.below = nullptr;
    stands_for.id = l.id, stands_for.level = l.level, stands_for.epoch = l.epoch;
    stands_for.outer_grad_mode = l.outer_grad_mode;
    stands_for.interpreter.given = static_cast<dynamic_level const*>(l.object)->given;
  }
};
/// One checkpointed call. It recomputes at first need what the forward pass would have saved.
template <class T = tensor>
struct checkpoint_region {
  struct place {
    dtype type;
    dims sizes;
  };
  std::vector<place> places;
  std::vector<T> values;                             // recomputed; each is returned once
  std::vector<dependent<std::uint32_t, T>> versions; // of the values, when they were computed
  std::uint64_t run = 0;                             // number of the backward pass for which they were computed
  generator random;
  lent_states lent{};
  bool stops_early = checkpoint_stops_early && VARVE_HAS_EXCEPTIONS(); // it stops by throwing
  std::unique_ptr<level_again<T>> level;
  shared_function<void()> again; // repeats the call
  boxed_args arguments;          // tensor arguments of the call; their versions follow
  std::vector<dependent<std::uint32_t, T>> argument_versions;

  /// Returns saved value k; recomputes it if needed.
  tensor value(std::size_t k);

private:
  struct enough {};
  void recompute();
};
/// The checkpointed call, stored so that it can be repeated.
template <class C, class F, class... X>
struct checkpointed_call {
  C contexts;
  F f;
  std::tuple<X...> args;
  void operator()() {
    if constexpr (requires { contexts.again.start(); }) contexts.again.start();
    context_guard<decltype(contexts.again)> const on(contexts.again);
    (void)call_with(f, std::tuple<X const&...>(args));
  }
};
/// Returns a region for a call that is about to be made. Null means that the function runs only once, without a region.
/// `again` is true if the function can run after the function around it has returned.
template <class T = tensor>
std::shared_ptr<checkpoint_region<T>> begin_checkpoint(bool again);
/// A scope in which values saved for the backward pass are recorded in a region and not kept.
template <class T = tensor>
class checkpoint_scope {
  struct pack {
    std::shared_ptr<checkpoint_region<T>> r;
    std::size_t operator()(tensor const& t) const {
      r->places.push_back({t.dtype(), t.sizes()});
      return r->places.size() - 1;
    }
  };
  struct unpack {
    std::shared_ptr<checkpoint_region<T>> r;
    tensor operator()(std::size_t k) const { return r->value(k); }
  };
  saved_tensors_hooks<pack, unpack> hooks_;
  lent_states_guard lent_;

public:
  explicit checkpoint_scope(std::shared_ptr<checkpoint_region<T>> const& r, boxed_args const& arguments)
      : hooks_(pack{r}, unpack{r}, r->level != nullptr), lent_(r->lent, false) {
    r->arguments = arguments;
    for (tensor const& t : arguments) r->argument_versions.push_back(t.defined() ? t.writes() : 0);
  }
};
} // namespace detail

template <class A, class B, class F, class... X>
auto checkpoint(checkpoint_contexts<A, B> const& contexts, F const& f, X const&... x);

/// Calls f(x...) without keeping what f computes for the backward pass. The backward pass runs f again, up to the last
/// value needed, with the same random numbers. On tensors f must do the same each time (`autograd_error` otherwise); it
/// may capture leaves. Checkpoints nest to any depth. They work under `vmap`, `jvp` and `grad`, and on static values as
/// a custom function. Under a run-time `grad` or `vjp`, f runs again after the function around it has returned.
/// Therefore f must have no captures or be a `closure` that declares them, and no other transform may be active.
/// Otherwise f runs once, and what its gradient needs is kept. Traced at run time, the call is an operator with a
/// region (`traced_checkpoint.hpp`). Memory: that of the arguments. Time: one more run of f.
template <class F, class... X>
constexpr auto checkpoint(F const& f, X const&... x) {
  if constexpr ((std::is_same_v<X, tensor> || ...)) {
    return checkpoint(checkpoint_contexts{none, none}, f, x...);
  } else {
    using R = detail::recomputed_function<F>;
    return custom_function_call<detail::recomputed, R>{R{f}}(detail::plain(x)...);
  }
}
/// Calls f(x...) like `checkpoint(f, x...)`, with modes that are on during the first and the second run. Only for
/// tensors. If no backward pass can follow, f runs without the modes.
template <class A, class B, class F, class... X>
auto checkpoint(checkpoint_contexts<A, B> const& contexts, F const& f, X const&... x) {
  static_assert((std::is_same_v<X, tensor> || ...), "varve: checkpoint with modes is for tensors");
  if (detail::inside_trace()) return detail::checkpoint_in_trace(f, x...);
  using contexts_t = checkpoint_contexts<A, B>;
  using call_t = detail::checkpointed_call<contexts_t, F, X...>;
  constexpr bool again = std::is_same_v<A, none_t> && std::is_same_v<B, none_t> && detail::owns_captures<F>;
  auto const r = detail::begin_checkpoint<>(again);
  if (!r) return f(x...);
  r->again = call_t{contexts, f, std::tuple<X...>(x...)};
  detail::checkpoint_scope<> const kept(r, detail::tensors_among(x...));
  detail::context_guard<A> const on(r->again.template target<call_t>()->contexts.forward);
  return f(x...);
}

#if VARVE_DEFINES
namespace detail {
template <class T>
tensor checkpoint_region<T>::value(std::size_t k) {
  auto* const pass = backward_run<T>::current();
  std::uint64_t const now = pass ? pass->id() : 0;
  if (values.empty() || run != now || !values[k].defined()) {
    values.clear(), versions.clear();
    recompute();
    run = now;
  }
  tensor t = values[k];
  if (t.writes() != versions[k]) refuse_stale(t, "checkpoint", versions[k]);
  if (!pass || !pass->keeps() || level) values[k] = tensor();
  return t;
}
template <class T>
void checkpoint_region<T>::recompute() {
  auto keep = [this](tensor const& t) -> std::size_t {
    std::size_t const k = values.size();
    if (k == places.size() && stops_early) refuse::with<enough>();
    if (k == places.size())
      refuse::with<autograd_error>(("varve: checkpoint: the recomputation is trying to save more values than the " +
                                    std::to_string(k) + " of the forward pass; the function must do the same each time")
                                       .c_str());
    if (t.dtype() != places[k].type || !(t.sizes() == places[k].sizes))
      refuse::with<autograd_error>(("varve: checkpoint: the recomputed value " + std::to_string(k) + " is " +
                                    name(t.dtype()) + to_string(t.sizes()) + ", but was " + name(places[k].type) +
                                    to_string(places[k].sizes) +
                                    " in the forward pass; the function must do the same each time")
                                       .c_str());
    values.push_back(t.alias());
    versions.push_back(t.writes());
    if (values.size() == places.size() && stops_early) refuse::with<enough>(); // all values are there
    return k;
  };
  auto const run = [&] {
    generator_guard const same(random);
    rerun_scope const told;
    lent_states_guard const same_lent(lent, true);
    set_grad_enabled const on(true);
    // The function may compute gradients itself.
    saved_tensors_hooks const hooks(keep, [this](std::size_t k) -> tensor { return values[k]; }, level != nullptr);
    struct as_then {
      layer* const top = this_thread_state.transforms.top;
      ~as_then() { set_top(this_thread_state.transforms, top); }
    } const after;
    if (level) set_top(this_thread_state.transforms, &level->stands_for);
    for (int k = 0; k < arguments.size(); ++k)
      if (auto const v = argument_versions[static_cast<std::size_t>(k)];
          arguments[k].defined() && arguments[k].writes() != v)
        refuse_stale(arguments[k], "checkpoint", v);
    again();
  };
  detail::attempt<enough>(run, [](enough const&) {});
  if (values.size() != places.size())
    refuse::with<autograd_error>(("varve: checkpoint: a different number of values was saved in the recomputation: " +
                                  std::to_string(values.size()) + ", but " + std::to_string(places.size()) +
                                  " in the forward pass")
                                     .c_str());
}
template <class T>
std::shared_ptr<checkpoint_region<T>> begin_checkpoint(bool again) {
  if (!is_grad_enabled()) return nullptr;
  layer* const level = one_level_of_grad<>();
  for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
    if (bool const gone_later = l->kind->role == layer_role::vmap || l->kind->role == layer_role::jvp;
        gone_later || (l->kind->records && (!level || !again)))
      return nullptr; // levels keep what they need; values of lanes and duals would no longer exist in a second run
  auto const r = std::make_shared<checkpoint_region<T>>();
  r->random = default_generator;
  if (level) r->level = std::make_unique<level_again<T>>(*level);
  return r;
}
} // namespace detail
#endif

} // namespace varve
