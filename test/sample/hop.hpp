// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// The table of samples of operators with functions: at least one row for each that the library has. A new operator
/// needs a row here; from it come the laws of `test/laws/hop*.cpp`.
#include "../../examples/foldl.hpp"
#include "hop_row.hpp"

#include <varve/autograd/checkpoint.hpp>
#include <varve/autograd/function.hpp>
#include <varve/autograd/saved_function.hpp>
#include <varve/hop/auto_functionalized.hpp>
#include <varve/hop/flex_attention.hpp>
#include <varve/hop/out_dtype.hpp>
#include <varve/hop/print.hpp>
#include <varve/hop/run_const_graph.hpp>
#include <varve/hop/switch_case.hpp>
#include <varve/implicit.hpp>
#include <varve/trace/make_fx.hpp>
#include <varve/varve.hpp>

namespace sample {
namespace vv = varve;

/// x becomes its sine: an operator that writes and has no functional form.
inline constexpr struct sine__t : vv::in_place<sine__t> {
  static constexpr auto op_name = "sine_";
} sine_{};
} // namespace sample
template <>
struct varve::rules<sample::sine__t> {
  static constexpr op_kind kind = op_kind::mutation;
  static constexpr int arity = 1, mutated = 0;
  static constexpr auto schema = "(Tensor(a!) self) -> Tensor(a!)";
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr meta shape(attributes const&, meta const* in, int) { return in[0]; }
  static void require_writable(tensor const& x) { detail::check_in_place("sine_", x, x.strides()); }
  static tensor make(attributes const&, tensor const& x) { return detail::write_into(x, sin(x)); }
};

namespace sample {
/// A product with derivatives of its own, which are those of the product.
struct own_product : vv::function<own_product> {
  static constexpr bool generate_vmap_rule = true;
  static tensor forward(tensor x, tensor y) { return x * y; }
  static auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in), std::get<1>(in)).save_for_forward(std::get<0>(in), std::get<1>(in));
  }
  static auto backward(auto& ctx, tensor g) {
    auto [x, y] = ctx.saved();
    return std::tuple(g * y, g * x);
  }
  static tensor jvp(auto& ctx, tensor dx, tensor dy) {
    auto [x, y] = ctx.saved_for_forward();
    return dx * y + x * dy;
  }
};

inline vv::saved_function<own_product, tensor, tensor> const own_product_is_known("own_product");

/// Branches, and what is made of them.
inline void add_branches(std::vector<hop_row>& to) {
  using v = values const&;
  using t = tensor const&;
  to.push_back({"cond",
                "one result",
                [](v x) {
                  return values{vv::cond(
                      vv::sum(x[0]) > 0.0, [](t a, t b) { return vv::sin(a) * b; }, [](t a, t b) { return a - b * b; },
                      x[0], x[1])};
                },
                {{3}, {3}}});
  to.push_back({"cond",
                "a capture, two results",
                [](v x) {
                  tensor const w = vv::tanh(x[1]);
                  auto const [p, q] = vv::cond(
                      vv::sum(x[0]) > 0.0, [w](t a) { return std::tuple(a * w, vv::exp(a)); },
                      [w](t a) { return std::tuple(a + w, w * 2.0 - a); }, x[0]);
                  return values{p, q * p};
                },
                {{2, 3}, {3}}});
  to.push_back(
      {"cond",
       "one in another",
       [](v x) {
         return values{vv::cond(
             x[0] > 0.0,
             [](t a, t b) { return vv::cond(a > 0.5, [](t u) { return u * u; }, [](t u) { return vv::cos(u); }, b); },
             [](t a, t b) { return b * a; }, x[0], x[1])};
       },
       {{}, {4}}});
  to.push_back({"cond",
                "switch_case",
                [](v x) {
                  tensor const index = vv::to(vv::abs(x[0]) * 2.0, dtype::int64);
                  return values{vv::switch_case(vv::detach(index),
                                                std::tuple([](t a) { return a * 2.0; }, [](t a) { return vv::sin(a); },
                                                           [](t a) { return a * a * a; }),
                                                x[1])};
                },
                {{}, {3}}});
}

/// Loops.
inline void add_loops(std::vector<hop_row>& to) {
  using v = values const&;
  using t = tensor const&;
  to.push_back({"foldl",
                "ends early, a capture",
                [](v x) {
                  tensor const w = x[2];
                  return values{::foldl([w](t c, t r) { return tensor(c + vv::sin(r * w)); },
                                        [](t c) { return tensor(vv::sum(c * c) > 0.4); }, x[0], x[1])};
                },
                {{2}, {5, 2}, {2}},
                plain,
                {{"it is made of other operators", {"fuse", "compile, fused", "emit_cpp", "emit_c"}}}});
  to.push_back({"scan",
                "a carry, rows and a capture",
                [](v x) {
                  tensor const w = x[2];
                  auto const [last, all] = vv::scan(
                      [w](t c, t r) {
                        tensor const n = vv::tanh(c * w + r);
                        return std::pair(n, n * c);
                      },
                      x[0], x[1]);
                  return values{last, all};
                },
                {{2}, {4, 2}, {2}}});
  to.push_back(
      {"scan",
       "backwards, over trees",
       [](v x) {
         auto const [last, all] = vv::scan(
             [](v c, v r) { return std::pair(values{c[0] * r[0] + c[1], vv::sin(c[1])}, values{r[0] + c[0]}); },
             values{x[0], x[1]}, values{x[2]}, true);
         return values{last[0], last[1], all[0]};
       },
       {{2}, {2}, {3, 2}}});
  to.push_back({"map",
                "two results, one argument for all",
                [](v x) {
                  return vv::map([](v r, v w) { return values{vv::sum(r[0] * w[0]), vv::exp(r[0])}; }, values{x[0]},
                                 values{x[1]});
                },
                {{4, 3}, {3}}});
  // The gradient keeps a row for each step. A fused program needs a bound of their number, a fake tensor the number.
  std::vector<refusal> const unbounded{
      {"without a bound there is no place for it", {"compile of vjp", "fuse of vjp"}},
      {"its gradient keeps a row for each step, and how many there are depends on data",
       {"compile, aot_eager of vjp", "compile, fused of vjp", "make_fx, fake of vjp", "make_fx, symbolic of vjp",
        "export of vjp", "save of vjp", "compile, aot_eager, backward", "compile, fused, backward"}}};
  to.push_back({"while_loop",
                "with a bound",
                [](v x) {
                  return values{vv::while_loop<9>([](t y, t) { return vv::sum(y * y) < 30.0; },
                                                  [](t y, t w) { return tensor(y * (vv::cos(w) + 1.5)); }, x[0] + 2.0,
                                                  x[1])};
                },
                {{3}, {3}}});
  to.push_back({"while_loop",
                "until the sum is large",
                [](v x) {
                  return values{vv::while_loop([](t y, t) { return vv::sum(y * y) < 30.0; },
                                               [](t y, t w) { return tensor(y * (vv::cos(w) + 1.5)); }, x[0] + 2.0,
                                               x[1])};
                },
                {{3}, {3}},
                plain,
                unbounded});
  to.push_back({"while_loop",
                "a counter, so that data of no argument end it",
                [](v x) {
                  auto const [n, y] = vv::while_loop([](t n, t) { return n < 3; },
                                                     [](t n, t y) { return std::tuple(n + 1, vv::sin(y) * y); },
                                                     std::tuple(tensor::from_number(std::int64_t{0}), x[0]));
                  return values{y};
                },
                {{2, 2}},
                plain,
                unbounded});
  to.push_back({"",
                "associative_scan",
                [](v x) { return values{vv::associative_scan([](t a, t b) { return a * b + a; }, x[0])}; },
                {{5, 2}}});
}

/// Calls that stay calls in graphs.
inline void add_calls(std::vector<hop_row>& to) {
  using v = values const&;
  using t = tensor const&;
  static auto const body = [](t a, t b) { return vv::sin(a) * b + b; };
  static auto const two = [](t a, t b) { return std::tuple(a * b, vv::exp(a)); };
  auto const call = [&](char const* op, auto f) { to.push_back({op, "one result", f, {{3}, {2, 3}}}); };
  call("wrap", [](v x) { return values{vv::wrap(body, x[0], x[1])}; });
  call("invoke_subgraph",
       [](v x) { return values{vv::invoke_subgraph(body, 3, vv::invoke_subgraph(body, 3, x[0], x[1]), x[1])}; });
  call("strict_mode", [](v x) { return values{vv::strict_mode(body, x[0], x[1])}; });
  call("hints_wrapper", [](v x) { return values{vv::hints_wrapper(body, {{"tile", 32}}, x[0], x[1])}; });
  to.back().refused = {{"known to the process that made them alone", {"save", "save of vjp"}}};
  call("wrap_activation_checkpoint", [](v x) { return values{vv::checkpoint(body, x[0], x[1])}; });
  call("out_dtype", [](v x) { return values{vv::out_dtype(vv::mul, dtype::float64, x[0], x[1])}; });
  call("custom_function_call", [](v x) { return values{own_product::apply(vv::sin(x[0]), x[1])}; });
  to.push_back({"wrap",
                "two results, one of them used",
                [](v x) {
                  auto const [p, q] = vv::wrap(two, x[0], x[1]);
                  return values{p * 2.0};
                },
                {{3}, {3}}});
  to.push_back({"out_dtype",
                "of bytes",
                [](v x) { return values{vv::out_dtype(vv::mm, dtype::int32, x[0], x[1])}; },
                {{2, 3}, {3, 2}},
                constant,
                {},
                {dtype::uint8, dtype::uint8}});
  to.push_back({"run_const_graph",
                "two results",
                [](v x) {
                  static vv::graph const g = vv::make_fx([](t a, t b) { return std::pair(vv::sum(a * b), a * 2.0); })(
                      vector_of({1, 2}), vector_of({1, 2}));
                  auto const r = vv::run_const_graph(g, values{x[0], x[1]});
                  return values{r[0] * x[0] + r[1]};
                },
                {{2}, {2}}});
  to.push_back({"auto_functionalized",
                "a part of a clone",
                [](v x) {
                  tensor const y = x[0] * 2.0;
                  sine_(vv::slice(y, 0, 1, 3));
                  return values{y * y};
                },
                {{3}},
                when_exported,
                {{"sine_ has no rule for",
                  {"jvp", "vjp", "* of jvp", "* of vjp", "*backward", "vmap", "vmap of one argument", "vjp of vmap"}},
                 {"has no functional form",
                  {"compile", "compile, fused", "optimize", "functional graph", "fuse", "emit_cpp", "emit_c"}}}});
  to.push_back({"with_effects",
                "two lines",
                [](v x) {
                  vv::print("first {}", vv::sum(x[0]));
                  tensor const y = vv::sin(x[0]) * x[1];
                  vv::print("then {}", vv::sum(y));
                  return values{y};
                },
                {{2}, {2}},
                prints | when_exported,
                {{"does something outside of the program",
                  {"fuse", "compile, fused", "fuse of vjp", "compile, fused of vjp", "compile, fused, backward",
                   "emit_cpp", "emit_c"}}}});
  to.push_back({"",
                "flex_attention",
                [](v x) {
                  return values{vv::flex_attention(x[0], x[1], x[2], [](auto s, auto, auto, auto i, auto j) {
                    return s + vv::to(i - j, dtype::float64) * 0.1;
                  })};
                },
                {{1, 2, 3, 2}, {1, 2, 4, 2}, {1, 2, 4, 3}}});
  to.push_back({"",
                "implicit::root",
                [](v x) {
                  static auto const cubic = vv::implicit::root(
                      [](t y, t a, t b) { return tensor(y * y * y + (a * a + 1.0) * y - vv::sin(b)); });
                  return values{cubic(vv::zeros_like(x[1]), x[0], x[1])};
                },
                {{3}, {3}},
                plain,
                {{"which no other process knows", {"save", "save of vjp"}},
                 {"linalg_solve cannot be written as a loop", {"emit_cpp"}}}});
}
} // namespace sample
