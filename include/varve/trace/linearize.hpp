// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/interpret.hpp>
#include <varve/trace/copy_as_laid_out.hpp>
#include <varve/trace/make_fx.hpp>
#include <varve/transform/jvp.hpp>

namespace varve {

/// The second result of `linearize`: a graph of the operators that are linear in the tangents, and the constants that
/// they need.
template <class Y>
class linear_map {
public:
  linear_map(graph g, boxed_args constants, std::vector<meta> primals, generator const& drawn_from)
      : graph_(std::move(g)), constants_(std::move(constants)), primals_(std::move(primals)), drawn_from_(drawn_from) {}

  /// Returns the derivative along tangents, which must have the number, shapes and dtypes of the primals. Throws
  /// `value_error`, `shape_error` or `dtype_error` otherwise.
  template <class... T>
  Y operator()(T const&... t) const {
    boxed_args x(t...);
    if (x.size() != static_cast<int>(primals_.size()))
      refuse::with<value_error>(("varve: linearize: " + std::to_string(x.size()) + " tangents were given for " +
                                 std::to_string(primals_.size()) + " primals")
                                    .c_str());
    for (int k = 0; k < x.size(); ++k) {
      meta const& m = primals_[static_cast<std::size_t>(k)];
      if (!(x[k].sizes() == m.sizes))
        refuse::shapes_do_not_match("linearize (tangent and primal)", x[k].sizes(), m.sizes);
      if (x[k].dtype() != m.type)
        refuse::with<dtype_error>(
            (std::string("varve: linearize: a tangent of ") + name(x[k].dtype()) + " for a primal of " + name(m.type))
                .c_str());
    }
    for (auto const& c : constants_) x.push_back(c);
    generator_guard const same(drawn_from_);
    boxed_args const r = interpret(graph_, x);
    int k = 0;
    if constexpr (is_tree_node<Y>) return tree_map([&](auto const&) { return r[k++]; }, Y{});
    else return r[0];
  }
  graph const& program() const { return graph_; }

private:
  graph graph_;
  boxed_args constants_;
  std::vector<meta> primals_;
  generator drawn_from_; // the random numbers are those of the function's value
};

/// Returns f(x...) and its derivative at x as a function: `auto [y, df] = linearize(f, x...)`. `df(t...)` equals
/// `jvp(f, x, t).second`, but runs only operators that are linear in the tangents. f runs once for y and once while it
/// is traced. Works on tensors only.
template <class F, class... X>
auto linearize(F f, X const&... x) {
  static_assert((std::is_same_v<X, tensor> && ...), "varve: linearize: primals must be tensors");
  generator const before = default_generator;
  auto y = f(x...);
  generator_guard const after(default_generator);
  default_generator = before; // the derivative draws the same random numbers as the value
  trace_layer l;
  boxed_args constants;
  l.captures = &constants;
  l.folds = true;
  l.copies_by(&detail::copy_as_laid_out<dependent<tensor, F>>);
  std::tuple const tangents{
      l.wrap(detail::constant_zeros(x), l.builder.input({x.dtype(), x.sizes()}))...}; // braces: evaluated in order
  {
    pushed const on(this_thread_state.transforms, l);
    detail::rerun_scope const told;
    auto const dy = jvp(f, std::tuple(x...), tangents).second;
    tree_for_each([&](auto const& v) { l.builder.result(l.node_of(v)); }, dy);
    l.require_unwritten();
  }
  graph const whole = l.builder.finish();
  graph g = without_scaffolds(whole);
  boxed_args ordered;
  for (int k : l.captured()) ordered.push_back(constants[k]);
  return std::pair(y,
                   linear_map<decltype(y)>(std::move(g), std::move(ordered), {meta{x.dtype(), x.sizes()}...}, before));
}

} // namespace varve
