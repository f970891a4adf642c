// SPDX-License-Identifier: BSL-1.0
// What modes see of symbolic sizes: the very size of the operand, as an attribute, and a count that depends on one as
// an operand.
#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using vv::dim, vv::spec;

namespace {
/// Keeps what it is handed of calls of `expand` and `div`.
struct watching : vv::dispatch_mode<watching> {
  vv::dims sizes;
  vv::proxy divisor{};
  template <class Op, class... X>
  constexpr auto process(Op op, X const&... x) {
    if constexpr (std::is_same_v<typename Op::tag, vv::expand_t>) sizes = vv::to_dims(op.a);
    if constexpr (std::is_same_v<typename Op::tag, vv::div_t>) keep(x...);
    return op(x...);
  }
  template <class X, class Y>
  constexpr void keep(X const&, Y const& y) {
    if constexpr (std::is_same_v<Y, vv::proxy>) divisor = y;
  }
};
constexpr auto repeats = [](auto const& x, auto const& like) { return vv::expand(x, vv::shape_of(like)); };
constexpr auto average = [](auto const& x) { return vv::mean(x, vv::axis<0>); };
/// 10 where the mode saw the size that the spec has a symbol for.
constexpr auto ten_if_seen = [](auto const& x, auto const& like) {
  watching m;
  auto const y = vv::with(m, repeats, x, like);
  return y * (m.sizes == vv::to_dims(vv::shape_of(like)) ? 10.0 : 1.0);
};
} // namespace

TEST_CASE("modes: a symbolic size reaches the handler as it is", "[dispatch][mode][trace][MD-S24]") {
  constexpr auto g = vv::trace(ten_if_seen, spec<float, 3>, spec<float, dim<"n">, 3>);
  STATIC_REQUIRE(g.count(vv::expand) == 1);
  CHECK_THAT(vv::to_string(g), ContainsText("expand(%0, [n, 3])") && ContainsText("constant(10)"));
  watching m;
  vv::dims size;
  vv::graph const traced = vv::trace_graph(
      [&](auto const& x, auto const& like) {
        size = vv::to_dims(vv::shape_of(like));
        return vv::with(m, repeats, x, like);
      },
      spec<float, 3>.info(), spec<float, dim<"n">, 3>.info());
  CHECK(m.sizes == size);
  CHECK(vv::fusion::is_sample(m.sizes[0]));
  CHECK(traced.nodes[2].at[0] == vv::dims{traced.symbol("n"), 3});
  CHECK(vv::example_of(traced.nodes[2].at[0][0]).type == "SymInt");
}

TEST_CASE("modes: a count that depends on a symbolic size reaches the handler as the value it is",
          "[dispatch][mode][fuse][MD-S24]") {
  vv::index_t const n = vv::fusion::samples[0][0];
  vv::graph_builder b;
  b.sizes_are_samples(n / 2);
  watching m;
  vv::graph const g = vv::trace_graph_into(
      b, [&](auto const& x) { return vv::with(m, average, x); }, vv::meta{vv::dtype::float32, {n, 3}, false});
  REQUIRE(m.divisor.builder);
  vv::node const& count = g.nodes[static_cast<std::size_t>(m.divisor.id)];
  CHECK(count.op == &vv::sym_numel_handle);
  CHECK(count.at[0] == vv::dims{n});
  vv::node const& quotient = g.nodes[static_cast<std::size_t>(g.results[0])];
  CHECK(quotient.op == &vv::handle<vv::div_t>);
  CHECK(g.edges[static_cast<std::size_t>(quotient.first + 1)] == m.divisor.id);
  // The fused program reads it from its argument.
  constexpr auto f = vv::fuse<spec<float, dim<"n">, 3>>(average);
  vv::tensor const y = f(vv::tensor{{1.0f, 2.0f, 3.0f, 5.0f, 6.0f, 7.0f}, {2, 3}});
  CHECK(y.data<float>()[0] == 3);
  CHECK(y.data<float>()[2] == 5);
}
