// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/custom/boxed_custom_function.hpp>
#include <varve/dispatch/higher_order.hpp>
#include <varve/interpreter/become_view.hpp>
#include <varve/interpreter/functionalize.hpp>
#include <varve/transform/dynamic_scope.hpp>

#include <algorithm>

/// @file
/// A run of `functionalize` on tensors, and its rules for higher-order operators.
namespace varve::detail {

/// The memory that results of a call share: result k with operand i, with a captured value, or with result j.
template <class Memory>
struct returned_memories {
  std::vector<std::pair<int, int>> operands, results;
  std::vector<std::pair<int, std::shared_ptr<Memory>>> captured;
  std::vector<int> outside; // result k is a captured tensor that the host does not know
};
/// A function that runs under a host (`functionalize` or `functional_mode`). It may write only into values that it
/// makes.
template <class Host>
struct functional_fn {
  Host const* host;
  boxed_function f;
  char const* who;
  std::shared_ptr<returned_memories<typename Host::memory>> returned;
  template <class P>
  P operator()(P const& x) const {
    Host const& in = *host;
    [[maybe_unused]] auto const on = in.inside();
    typename Host::inner_function const apart(in);
    P const closed = in.wrap(x), y = f(closed);
    for (auto const& t : closed)
      if (t.defined() && in.is_written(t))
        refuse::with<transform_error>(
            (std::string("varve: ") + who +
             ": the function writes into one of its operands, or a view of it; return the new value instead")
                .c_str());
    for (auto const& t : y)
      if (t.defined() && in.loses_gradient(t)) refuse_eager_gradient(who, "functional_mode");
    if (returned) find_returned(in, closed, y);
    [[maybe_unused]] auto const off = in.below();
    return in.open_functional(y);
  }

private:
  template <class P>
  void find_returned(Host const& in, P const& x, P const& y) const {
    for (int k = 0; k < y.size(); ++k) {
      if (!y[k].defined()) continue;
      if (!in.mine(y[k])) {
        returned->outside.push_back(k);
        continue;
      }
      for_each_memory(in, y[k], [&](auto const& m) {
        bool operand = false;
        for (int i = 0; i < x.size(); ++i)
          if (x[i].defined() && in.memory_of(x[i]) == m) operand = true, returned->operands.push_back({k, i});
        if (!operand && !m->is_writable()) returned->captured.push_back({k, m});
        for (int j = 0; j < k; ++j)
          if (y[j].defined() && in.mine(y[j]))
            for_each_memory(in, y[j], [&](auto const& other) {
              if (other == m) returned->results.push_back({k, j});
            });
      });
    }
  }
  template <class F>
  static void for_each_memory(Host const& in, tensor const& t, F const& f) {
    auto const& m = in.memory_of(t);
    m->for_each_source(m, f);
  }
};
/// Calls a custom function below the host; defined in functional_function.hpp.
template <class Host>
boxed_args functional_custom_call(Host const& in, custom_function_ptr const& f, boxed_args const& x);
/// Calls a higher-order operator below the host, with functions that do not write.
template <class Host>
boxed_args functional_hop(Host const& in, boxed_hop const& call, boxed_args const& x) {
  if (custom_function_ptr const f = custom_function_of(call)) return functional_custom_call(in, f, x);
  bool const passes = call.op->passes_results(); // a loop copies the results of its functions
  using memories = returned_memories<typename Host::memory>;
  std::shared_ptr<memories> const returned = passes ? std::make_shared<memories>() : nullptr;
  std::vector<boxed_function> functions;
  for (auto const& f : call.functions) functions.push_back(functional_fn<Host>{&in, f, call.name(), returned});
  [[maybe_unused]] auto const off = in.below();
  boxed_args const y = in.wrap(call.with(std::move(functions))(in.open_functional(x)));
  if (!returned) return y;
  for (auto const& [k, i] : returned->operands) // after a predicate, or the state of the generator
    if (in.mine(x[1 + i])) in.lie_in(y[k], in.memory_of(x[1 + i]), call.name());
    else in.refuse_writes(y[k], call.name());
  for (int k : returned->outside) in.refuse_writes(y[k], call.name());
  for (auto const& [k, m] : returned->captured) in.lie_in(y[k], m, call.name());
  for (auto const& [k, j] : returned->results) in.refuse_writes(y[k], call.name()), in.refuse_writes(y[j], call.name());
  return y;
}
/// Returns the host that a layer of `functionalize` represents.
template <class On>
functionalize_interpreter<dependent<tensor, On>> const& functional_level(layer const& l) {
  return static_cast<functionalize_interpreter<dependent<tensor, On>> const&>(*static_cast<dynamic_level*>(l.object));
}
template <class On = void>
boxed_args functionalized_call(layer& l, boxed_hop const& call, boxed_args const& x) {
  return functional_hop(functional_level<On>(l), call, x);
}

template <class On>
inline constexpr layer_kind functionalize_kind{
    .name = "functionalize",
    .role = layer_role::functionalize,
    .keys = transform_keys(transform_type::functionalize),
    .process = &interpreter_layer<functionalize_interpreter<dependent<tensor, On>>>::process,
    .process_hop = &functionalized_call<On>,
    .records = true};

/// One run of `functionalize` on tensors.
template <class On = void>
class dynamic_functional_scope {
  using T = dependent<tensor, On>;

public:
  dynamic_functional_scope() : layer_(functionalize_kind<On>, this_thread_state.transforms) {}
  dynamic_functional_scope(dynamic_functional_scope const&) = delete;
  dynamic_functional_scope& operator=(dynamic_functional_scope const&) = delete;
  ~dynamic_functional_scope() { level().run->ended = true; }
  functionalize_interpreter<T> const& level() const { return layer_.interpreter; }

  /// Returns the wrapped value of an argument. The same object passed twice has one value.
  T argument(T const& x) {
    for (auto const& [original, seen] : arguments_)
      if (original.is(x)) return seen;
    arguments_.push_back({x, level().wrap(x)});
    return arguments_.back().second;
  }
  template <class Body>
  auto run(Body const& body) {
    pushed const on(this_thread_state.transforms, layer_);
    return body();
  }
  T result(T const& y) const { return level().mine(y) ? y.current() : y; }
  /// Writes the new values into the arguments, one `copy_` each, after checking that all of these writes are possible.
  /// Autograd does not see a write if it saw none of the function's writes into that argument.
  void write_back() const {
    struct write {
      T into, value;
      bool recorded;
    };
    std::vector<write> all;
    for (auto const& [x, seen] : arguments_) {
      bool const reshaped = level().alias_of(seen).at != nullptr;
      if (!level().is_written(seen) && !reshaped) continue;
      for (auto const& [other, _] : arguments_)
        if (!other.is(x) && other.shares_storage(x))
          refuse::with<transform_error>(
              "varve: functionalize: the function writes into an argument that shares memory with "
              "another one; pass one of them, and make views of it inside");
      if (reshaped) reshape_back(x, seen);
      if (!level().is_written(seen)) continue;
      bool const recorded = level().writes_recorded(seen);
      set_grad_enabled const as_written(recorded && this_thread_state.grad_mode);
      all.push_back({x, seen.current(), recorded});
    }
    for (write const& w : all)
      if (all.size() > 1) check_write_back(w.into, w.value, w.recorded);
    for (write const& w : all) {
      set_grad_enabled const as_written(w.recorded && this_thread_state.grad_mode);
      copy_(w.into, w.value);
    }
  }

private:
  /// Makes an argument whose shape was changed in place (`transpose_`) the corresponding view of itself.
  void reshape_back(T const& x, T const& seen) const {
    set_grad_enabled const as_there(this_thread_state.grad_mode);
    become("functionalize", x,
           [&](T const& v) { return functional_memory<T>::shown(v, level().alias_of(seen).at.get()); });
  }
  /// Refuses writes that a transform below, or autograd, would refuse.
  static void check_write_back(tensor x, tensor y, bool recorded) {
    while (x.is_wrapped() || y.is_wrapped()) {
      std::uint64_t const id = (std::max)(x.layer(), y.layer());
      bool const into = x.layer() == id, from = y.layer() == id;
      bool const holds = from && (y.history() || y.extra().defined() || y.state() || y.dim() != y.inner().dim());
      if (holds && !into)
        refuse::with<transform_error>(
            "varve: functionalize: the function writes a value of a transform into an argument that "
            "has no part in it; use the functional operator");
      if (into && recorded && (x.history() || (from && y.history()))) check_write("copy_", x);
      if (into) x = x.current();
      if (from) y = y.current();
    }
    if (recorded && is_grad_enabled() && (x.has_history() || y.has_history())) check_write("copy_", x);
  }

  interpreter_layer<functionalize_interpreter<T>> layer_;
  std::vector<std::pair<T, T>> arguments_;
};

} // namespace varve::detail
