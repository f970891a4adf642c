// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/spin_lock.hpp>
#include <varve/fuse/graph.hpp>
#include <varve/trace/make_fx.hpp>

#include <concepts>
#include <optional>

namespace varve {

namespace detail {
/// Would the operators of a function meet nothing but their kernels? Then they may be run as one.
inline bool runs_plainly(tensor const& t) {
  return t.defined() && !t.is_wrapped() && t.has_data() && t.keys().has(dispatch_key::cpu) &&
         !(t.requires_grad() && is_grad_enabled());
}
/// What a trace depends on of an argument.
inline bool same_kind(meta const& m, tensor const& t) { return m == meta_of(t) && m.number == t.is_number(); }
} // namespace detail

struct fast_math_t; // fast_math.hpp

/// A function of tensors that is traced, planned and fused for each set of dtypes and sizes it is called with: see
/// `compile`. Threads may share it; copies share what was made.
template <class F, class... How>
class compiled_function {
public:
  explicit compiled_function(F f) : f_(std::move(f)), made_(std::make_shared<cache>()) {}

  template <class... X>
    requires(std::is_same_v<X, tensor> && ...)
  auto operator()(X const&... x) const {
    return this_thread_state.quiet() ? call(loop::plain_tensor(x)...) : call(x...);
  }
  /// Traces and plans for these arguments, without writing into them. What the function captures it may not write into
  /// here (`value_error`): the trace does it.
  template <class... X>
  void prepare(X const&... x) const {
    if (find(x...)) return;
    std::optional<decltype(detail::call_with(f_, std::tuple<X const&...>(x...)))> traced;
    for (int at : trace(traced, tensor(clone(x))...)->written)
      if (at >= static_cast<int>(sizeof...(X)))
        refuse::argument_is_invalid("compile", "the function writes into a tensor that it captures, and did so while "
                                               "it was traced; pass the tensor as an argument");
  }
  /// For how many sets of dtypes and sizes a program was made.
  std::size_t versions() const {
    detail::spin_lock::held const on(made_->lock);
    return made_->all.size();
  }

private:
  struct version {
    std::vector<meta> arguments;
    boxed_args captured;
    fused_graph run;
    list<int> written;                   // arguments and captures that further results are written into, by number
    std::shared_ptr<void const> results; // the tree that the function returned, with undefined tensors
  };
  struct cache {
    detail::spin_lock lock;
    std::vector<std::shared_ptr<version const>> all;
  };

  template <class... X>
  auto call(X const&... x) const {
    using Y = decltype(detail::call_with(f_, std::tuple<X const&...>(x...)));
    if (!this_thread_state.quiet() || !(detail::runs_plainly(x) && ...))
      return detail::call_with(f_, std::tuple<X const&...>(x...));
    std::shared_ptr<version const> v = find(x...);
    if (!v) {
      std::optional<Y> traced;
      v = trace(traced, x...);
      if (!v->written.empty()) return *traced; // the trace has written already
    }
    for (auto const& t : v->captured)
      if (!detail::runs_plainly(t)) return detail::call_with(f_, std::tuple<X const&...>(x...));
    boxed_args in(x...);
    for (auto const& t : v->captured) in.push_back(t);
    for (int at : v->written) // the trace took them for apart, and for row-major
      for (int k = 0; k < in.size(); ++k)
        if (k == at ? !in[at].is_contiguous() : in[k].shares_storage(in[at]))
          return detail::call_with(f_, std::tuple<X const&...>(x...));
    boxed_args const y = v->run(in);
    int k = y.size() - static_cast<int>(v->written.size());
    for (int at : v->written) copy_(in[at], static_cast<dependent<tensor, F> const&>(y[k++]));
    k = 0;
    return tree_map([&](auto const&) -> tensor { return y[k++]; }, *static_cast<Y const*>(v->results.get()));
  }
  template <class... X>
  static bool fits(version const& v, X const&... x) {
    if (v.arguments.size() != sizeof...(X)) return false;
    [[maybe_unused]] std::size_t k = 0;
    if (!(detail::same_kind(v.arguments[k++], x) && ...)) return false;
    for (int c = 0; c < v.captured.size(); ++c)
      if (!(v.run.arguments()[static_cast<std::ptrdiff_t>(sizeof...(X)) + c] == meta_of(v.captured[c]))) return false;
    return true;
  }
  template <class... X>
  std::shared_ptr<version const> find(X const&... x) const {
    detail::spin_lock::held const on(made_->lock);
    for (auto const& v : made_->all)
      if (fits(*v, x...)) return v;
    return nullptr;
  }
  template <class Y, class... X>
  VARVE_COLD std::shared_ptr<version const> trace(std::optional<Y>& traced, X const&... x) const {
    boxed_args captured;
    std::shared_ptr<void const> results;
    auto const returned = [&](Y const& y) {
      results = std::make_shared<Y>(tree_map([](auto const&) { return tensor(); }, y));
      traced = tree_map([](auto const& t) -> tensor { return t.is_wrapped() ? t.inner() : t; }, y);
    };
    using G = dependent<graph, F>; // what is known without F compilers may instantiate without a use
    G const g = make_fx_function<F const&>(f_).with_captures(captured, returned, x...);
    list<int> written;
    G const values = values_only(g);
    G const pure = functionalize(values);
    G const whole = detail::writes_as_results(pure, written);
    auto v = std::make_shared<version const>(
        version{{meta_of(x)...}, std::move(captured), fuse(whole, How{}...), std::move(written), std::move(results)});
    detail::spin_lock::held const on(made_->lock);
    for (auto& old : made_->all)
      if (old->arguments == v->arguments && !fits(*old, x...)) { // what it captures has another shape now
        old = v;
        return v;
      }
    made_->all.push_back(v);
    return v;
  }

  F f_;
  std::shared_ptr<cache> made_;
};

/// `auto fast = compile(f); tensor y = fast(x);`: traces `f` at the dtypes and sizes of its first arguments, fuses the
/// graph (`fuse(graph)`), and runs that from then on; arguments of other dtypes or sizes are traced anew, once.
/// Arguments are tensors; results may be a tree of tensors, all fresh. Tensors that `f` captures are inputs: what is in
/// them counts at each call, not at the first; write into them (`copy_`), for another tensor that is assigned to a
/// captured variable later is not seen. What it writes into arguments and captured tensors is written when all is
/// computed. Branches of C++ control flow are those of the first call: use `where` or `cond` where they depend on
/// values. Gradients: `compile(grad(f))`. Where transforms, modes or autograd watch, the call runs `f` itself, operator
/// by operator. Errors: those of `make_fx` and `fuse(graph)` at the first call.
template <class F>
auto compile(F f) {
  return compiled_function<F>(std::move(f));
}
/// ... fused in another way: `compile(f, fast_math)`.
template <class F, std::same_as<fast_math_t> How>
auto compile(F f, How) {
  return compiled_function<F, How>(std::move(f));
}
/// ... and makes the program for these arguments at once.
template <class F, class... X>
  requires(sizeof...(X) > 0 && (std::is_same_v<X, tensor> && ...))
auto compile(F f, X const&... x) {
  compiled_function<F> r(std::move(f));
  r.prepare(x...);
  return r;
}

/// What `fuse(f)` gives of a function that captures: on tensors `compile(f)`, since the compiler cannot see what is
/// captured; static values are refused.
template <class F, class... How>
class fused_with_captures : public compiled_function<F, How...> {
public:
  using compiled_function<F, How...>::compiled_function;

  template <class... A>
  auto operator()(A const&... a) const {
    if constexpr ((std::is_same_v<A, tensor> && ...)) return compiled_function<F, How...>::operator()(a...);
    else if constexpr ((std::is_same_v<std::remove_cvref_t<decltype(detail::viewed(a))>, tensor> && ...))
      return compiled_function<F, How...>::operator()(detail::viewed(a)...); // memory with `dyn` extents
    else
      static_assert(never<A...>, "varve: fuse: the function must capture nothing, but for calls on tensors alone; pass "
                                 "the values as arguments, or compile(f)");
  }
  template <class... R>
  compiled_function<F, How...> const& into(R&&...) const {
    static_assert(never<R...>, "varve: fuse: the function must capture nothing to write its results into(...); pass "
                               "the values as arguments, or take the results that calls return");
    return *this;
  }
};

/// `auto fast = fuse([&](auto const& x) { return x * w; });`: a function that captures, for calls on tensors: it is
/// planned at its first call, as by `compile(f)`. What holds there holds here: captured tensors are inputs of every
/// call, captured numbers constants of the first. On static values it is refused by the compiler.
template <class F>
  requires(!std::is_empty_v<F> && !std::is_same_v<F, graph>)
auto fuse(F const& f) {
  return fused_with_captures<F>(f);
}
/// ... `fuse(f, table_driven)`: programs made at run time are tables always.
template <class F, loop::execution How>
  requires(!std::is_empty_v<F> && !std::is_same_v<F, graph>)
auto fuse(F const& f, How) {
  return fused_with_captures<F>(f);
}

/// ... `fuse(f, fast_math)`, likewise.
template <class F, std::same_as<fast_math_t> How>
  requires(!std::is_empty_v<F> && !std::is_same_v<F, graph>)
auto fuse(F const& f, How) {
  return fused_with_captures<F, How>(f);
}

} // namespace varve
