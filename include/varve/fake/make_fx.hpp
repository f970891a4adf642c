// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fake/fake_mode.hpp>
#include <varve/trace/make_fx.hpp>

namespace varve {

namespace tracing {
/// Option of `make_fx`: the trace runs on real values.
struct real_t {};
inline constexpr real_t real{};
/// Option of `make_fx`: the trace runs on fake tensors. It reads and writes no tensor of the user and draws no random
/// number.
struct fake_t {};
inline constexpr fake_t fake{};
/// Option of `make_fx`: the trace runs on fake tensors whose sizes are symbols, with a policy for each argument. The
/// default policy is `duck`.
struct symbolic_t {
  std::vector<std::vector<dim_dynamic>> policies{};
  bool others_fixed = false; // true: arguments without a policy keep their sizes
  symbolic_t operator()(std::vector<std::vector<dim_dynamic>> p) const { return {std::move(p)}; }
};
inline symbolic_t const symbolic{};
} // namespace tracing

namespace detail {
/// A policy that runs a trace on fakes of the given values. The tracer is a mode below all others. Inside a transform,
/// whose values a mode would not see, it is a transform. Under an active fake mode it uses tensors of that mode.
template <class Mode = fake_mode>
class on_fake_values {
public:
  struct options {};
  static constexpr bool apart = true;
  explicit on_fake_values(options const& = {}) : on_fake_values(fake_mode_options{}, mode_at_work()) {}
  static layer_kind const& host() {
    return this_thread_state.transforms.top ? trace_layer::own_kind : trace_layer::mode_kind;
  }
  static tensor literal(tensor const& t) { return is_fake(t) ? fake_memory::of_tensor(t).value : tensor(); }
  template <class T>
  static T value(T const& t) {
    return fake_of(t, {});
  }
  template <class T>
  static T twin(T const& t) {
    T const r = mode_at_work()->like(t, t.sizes()).with_layout(t.where(), false);
    if (value_follower* const f = mode_at_work()->follower()) f->made(t, r);
    mirror_autograd_meta(t, r);
    return r;
  }
  /// Refuses a graph that reads a number from data if its sizes are symbols of a surrounding trace. The number would be
  /// another one in the graph of that trace.
  template <class G>
  static void finish(G& g) {
    bool reads = false, is_symbolic = false;
    auto const look = [&](dims const& d) {
      for (int k = 0; k < d.n; ++k) is_symbolic = is_symbolic || (d[k].is_entry() && d[k].environment() != 0);
    };
    for (node const& n : g.nodes) {
      reads = reads || n.op == &handle<local_scalar_t>;
      look(n.out.sizes);
      for (int k = 0; k < n.at.count; ++k) look(n.at.fact[k]);
    }
    if (reads && is_symbolic)
      refuse::with<data_dependent_error>(
          "varve: make_fx: a trace on fakes inside of a symbolic one reads a number of data, which would be a size of "
          "the other's graph; trace the function once, by tracing::symbolic");
  }

protected:
  explicit on_fake_values(fake_mode_options const& o, Mode* around = nullptr)
      : mode_(o), on_(around ? *around : mode_, !this_thread_state.transforms.top) {}
  template <class T>
  static T fake_of(T const& t, std::vector<dim_dynamic> const& policy) {
    Mode& mode = *mode_at_work();
    if (is_fake(t)) return t;
    return t.is_wrapped() ? mode.like(t, t.sizes()) : mode.from_tensor(t, policy);
  }
  static Mode* mode_at_work() {
    layer const* const l = this_thread_state.infra[static_cast<int>(infra_mode::fake)].top;
    return l ? static_cast<Mode*>(l->object) : nullptr;
  }

private:
  Mode mode_;
  fake_mode_guard on_;
};
/// Copies symbolic sizes and attributes into entries of the graph. Guards and ranges of symbols become its guards.
template <class G>
void own_sizes(G& g, shape_environment const& from) {
  for (node& n : g.nodes) {
    bool const reads = n.op == &handle<local_scalar_t>;
    auto const all = [&](dims& d) {
      for (int k = 0; k < d.n; ++k)
        d[k] = reads ? from.import_unresolved(g.expressions, d[k]) : from.import_into(g.expressions, d[k]);
    };
    all(n.out.sizes);
    for (int k = 0; k < n.at.count; ++k) all(n.at.fact[k]);
  }
  for (size_guard const& asked : from.conditions(g.expressions)) g.guards.push_back(asked);
}
/// A policy that runs a trace on fakes of the given values, with symbolic sizes. The sizes are symbols of an
/// environment until the graph is finished and has expressions of its own.
template <class Mode = fake_mode>
class on_symbolic_values : shape_environment, on_fake_values<Mode> {
public:
  using options = tracing::symbolic_t;
  using on_fake_values<Mode>::host, on_fake_values<Mode>::literal;
  static constexpr bool apart = true;
  explicit on_symbolic_values(options const& how)
      : on_fake_values<Mode>(own_options(this)), how_(how), before_(std::exchange(at_work, this)) {}
  ~on_symbolic_values() { at_work = before_; }
  template <class T>
  static T value(T const& t) {
    std::size_t const k = at_work->inputs_++;
    auto const& policies = at_work->how_.policies;
    if (k < policies.size()) return on_fake_values<Mode>::fake_of(t, policies[k]);
    std::size_t const fixed = at_work->how_.others_fixed ? static_cast<std::size_t>(t.dim()) : 0;
    return on_fake_values<Mode>::fake_of(t, std::vector<dim_dynamic>(fixed, dim_dynamic::fixed));
  }
  template <class T>
  static T twin(T const& t) {
    return on_fake_values<Mode>::twin(t);
  }
  template <class G>
  void finish(G& g) const {
    own_sizes(g, *this);
  }

private:
  /// Refuses another active fake mode, whose tensors have sizes of their own.
  static fake_mode_options own_options(shape_environment* e) {
    if (on_fake_values<Mode>::mode_at_work())
      refuse::with<dispatch_error>(
          "varve: make_fx: a trace on symbolic sizes inside of another one, or under another fake_mode "
          "cannot have sizes of its own; use tracing::fake there");
    return {.environment = e};
  }
  static inline thread_local on_symbolic_values* at_work = nullptr;
  options const& how_;
  on_symbolic_values* before_;
  std::size_t inputs_ = 0;
};
} // namespace detail

/// Traces a function on fake tensors: `make_fx(f, tracing::fake)(x...)`. It works as `make_fx(f)`, but no operator
/// computes. No element of x is read, no random number is drawn, and tensors that f writes do not change. As in every
/// trace, C++ branches on elements of x are refused; constants may be read as numbers.
template <class F>
auto make_fx(F f, tracing::fake_t) {
  return make_fx_function<F, detail::on_fake_values<>>(static_cast<F&&>(f));
}
template <class F>
auto make_fx(F f, tracing::real_t) {
  return make_fx_function<F>(static_cast<F&&>(f));
}
/// Traces a function into a graph for different sizes: `make_fx(f, tracing::symbolic)(x...)`. Sizes of x become
/// symbols; equal sizes share a symbol, and 0 and 1 stay numbers. Policies change that:
/// `tracing::symbolic({{dim_dynamic::dynamic, dim_dynamic::fixed}})`. If f or a shape rule makes a decision by a size
/// (for example broadcasting or `select`), the graph gets a guard. `interpret` throws `shape_error` for sizes that
/// violate a guard. `mean` over a symbol uses the size as a fixed number.
template <class F>
auto make_fx(F f, tracing::symbolic_t how) {
  return make_fx_function<F, detail::on_symbolic_values<>>(static_cast<F&&>(f), std::move(how));
}

#if VARVE_COMPILED && VARVE_DEFINES_CAPTURE // for the library
namespace detail {
template graph trace_boxed<on_fake_values<>>(boxed_function_ref, boxed_args const&, on_fake_values<>::options const&,
                                             capture_policy, boxed_args*);
template graph trace_boxed<on_symbolic_values<>>(boxed_function_ref, boxed_args const&,
                                                 on_symbolic_values<>::options const&, capture_policy, boxed_args*);
} // namespace detail
#endif

} // namespace varve
