// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/compile/versions.hpp>
#include <varve/fuse/graph.hpp>
#include <varve/interpreter/mode_guard.hpp>

namespace varve {

namespace detail {
/// Results in memory of their own.
template <class T = tensor>
boxed_args fresh_results(boxed_args const& y, boxed_args const& x) {
  boxed_args r;
  for (int k = 0; k < y.size(); ++k) {
    bool shared = false;
    for (auto const& t : x) shared = shared || y[k].shares_storage(t);
    for (int j = 0; j < k; ++j) shared = shared || y[k].shares_storage(y[j]);
    r.push_back(shared ? clone(static_cast<T const&>(y[k])) : y[k]);
  }
  return r;
}
/// A fused program of a function, with what it wrote as further results.
template <class F, class... How>
struct fused_program {
  fused_graph run;
  list<int> written; // arguments and captures that further results are written into
  std::vector<typename numbers_read<dependent<tensor, F>>::one> numbers;
  boxed_function by_operators{}; // in place of `run`, where the graph has effects
  bool records = false;          // ... in a scope of `enable_grad`, whatever the mode around

  template <class R, class... X>
  static fused_program make(F const& f, boxed_args& captured, R const& returned, X const&... x) {
    using G = dependent<graph, F>; // what is known without F compilers may instantiate without a use
    numbers_read<dependent<tensor, F>> read;
    G const g = make_fx_function<F const&>(f).with_captures(captured, returned, x...);
    list<int> written;
    G const values = values_only(g);
    G const pure = functionalize(values, purpose::values);
    G const whole = writes_as_results(pure, written);
    if (count_effects(whole) > 0)
      return {fused_graph(nullptr), std::move(written), std::move(read.all),
              [whole](boxed_args const& in) { return fresh_results(interpret(whole, in), in); }, records_itself(g)};
    return {fuse(whole, How{}...), std::move(written), std::move(read.all), {}, records_itself(g)};
  }
  template <class G>
  static bool records_itself(G const& g) {
    for (node const& n : g.nodes)
      if (n.mode == recording::on) return true;
    return false;
  }
  template <class... X>
  static bool is_for(X const&...) {
    return true;
  }
  bool still() const { return numbers_read<dependent<tensor, F>>::still(numbers); }
};
} // namespace detail

struct fast_math_t; // fast_math.hpp

/// A function of tensors that is traced, planned and fused for each set of dtypes and sizes it is called with: see
/// `compile`. Threads may share it; copies share what was made.
template <class F, class... How>
class compiled_function {
public:
  explicit compiled_function(F f) : f_(std::move(f)), made_(std::make_shared<versions_t>()) {}

  /// Arguments are tensors, or trees in which numbers are constants of the program.
  template <class... X>
    requires(std::is_same_v<X, tensor> && ...)
  auto operator()(X const&... x) const {
    return this_thread_state.quiet() ? call(loop::plain_tensor(x)...) : call(x...);
  }
  template <class... X>
    requires(!(std::is_same_v<X, tensor> && ...) && (detail::compilable<X>() && ...))
  auto operator()(X const&... x) const {
    return call(x...);
  }
  /// Traces and plans for these arguments, unseen by modes, and writes nothing.
  template <class... X>
  void prepare(X const&... x) const {
    disable_modes const unseen; // what runs then has them (CE-2)
    (void)made_->found_or_made(f_, x...);
  }
  /// For how many sets of dtypes and sizes a program is kept.
  std::size_t versions() const { return made_->size(); }
  /// What a call with these arguments would run: a program that is kept, or another one and why. Runs nothing. (Where
  /// transforms, modes or autograd watch, calls run the function itself.)
  template <class... X>
  std::string explain(X const&... x) const {
    return made_->explain(x...);
  }

private:
  using versions_t = detail::program_versions<F, detail::fused_program<F, How...>>;

  template <class... X>
  auto call(X const&... x) const {
    using Y = decltype(detail::call_with(f_, std::declval<std::tuple<X const&...>>()));
    auto const itself = [&]() -> Y { return detail::call_with(f_, std::tuple<X const&...>(x...)); };
    boxed_args in = detail::tensors_among(x...);
    if (!this_thread_state.quiet() || !detail::run_plainly(in)) return itself();
    auto const v = made_->found_or_made(f_, x...);
    if (!detail::run_plainly(v->captured)) return itself();
    for (auto const& t : v->captured) in.push_back(t);
    if (v->program.records)
      for (auto const& t : in)
        if (t.has_history()) return itself();
    list<int> const& written = v->program.written;
    for (int at : written) // the trace took them for apart, and for row-major
      for (int k = 0; k < in.size(); ++k)
        if (k == at ? !in[at].is_contiguous() : in[k].shares_storage(in[at])) return itself();
    boxed_args const y = v->program.by_operators ? v->program.by_operators(in) : v->program.run(in);
    int k = y.size() - static_cast<int>(written.size());
    for (int at : written) copy_(in[at], static_cast<dependent<tensor, F> const&>(y[k++]));
    if constexpr (!std::is_void_v<Y>) return v->template result<Y>(y);
  }

  F f_;
  std::shared_ptr<versions_t> made_;
};

/// `auto fast = compile(f); tensor y = fast(x);`: traces `f` at the dtypes and sizes of its first arguments, fuses the
/// graph (`fuse(graph)`), and runs that from then on; arguments of other dtypes or sizes are traced anew, once, and so
/// where `is_contiguous()`, `requires_grad()` or `is_grad_enabled()` would answer otherwise: the 64 programs that were
/// called last are kept. Arguments are tensors, or
/// trees of them in which numbers are constants; results may be a tree of tensors, all fresh, or nothing. Tensors that
/// `f` captures are inputs: what is in them counts at each call, not at the first; write into them (`copy_`), for
/// another tensor that is assigned to a captured variable later is not seen, nor is what `f` asks of a captured tensor
/// that no operator is called on (`defined()`, sizes). Where it reads a captured tensor as a number (`item()`, an
/// `if`), it is traced again when that has changed; reading its memory (`data()`) is refused. The trace runs on copies:
/// nothing is written or drawn but by the program, and what it writes into arguments and captured tensors is written
/// when all is computed. Branches of C++ control flow are those of the trace: use `where` or `cond` where they depend
/// on values of arguments. Functions with effects (`print`) run operator by operator. Gradients: `compile(grad(f))`.
/// Where transforms, modes or autograd watch, the call runs `f` itself, operator by operator. Errors: those of
/// `make_fx` and `fuse(graph)` at the first call.
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
