// SPDX-License-Identifier: BSL-1.0
// Traces of symbolic sizes: two traces for samples read back as one graph, whose sizes are expressions of the symbols.
#include <varve/varve.hpp>

#include <string_view>
namespace vv = varve;
using vv::dim, vv::dims, vv::spec;

/// Does a size of a graph read like this?
constexpr bool reads(auto const& g, vv::extent size, std::string_view text) {
  vv::list<char> letters;
  vv::size_view(g.view().expressions).write(letters, size);
  return std::string_view(letters.data(), letters.size()) == text;
}
constexpr vv::node const& result(auto const& g, int k = 0) { return g.nodes[g.results[k]]; }
constexpr bool result_reads(auto const& g, std::string_view first) {
  return vv::verify(g) && reads(g, result(g).out.sizes[0], first);
}

// mean over a symbolic axis divides by the count, a value of the call
constexpr auto average = [](auto x) { return vv::mean(x, vv::axis<0>); };
constexpr auto m = vv::trace(average, spec<float, dim<"n">, 3>);
static_assert(vv::verify(m) && m.operations() == 3 && m.count(vv::sum) == 1 && result(m).out.sizes == dims{3});
static_assert(m.nodes[2].op == &vv::sym_numel_handle && reads(m, m.nodes[2].at[0][0], "n") &&
              reads(m, m.nodes[0].out.sizes[0], "n") && reads(m, m.nodes[0].out.sizes[1], "3"));
// ... and so does its gradient
constexpr auto descent = vv::trace(vv::grad([](auto x) { return vv::mean(x * x); }), spec<double, dim<"n">, 3>);
static_assert(result_reads(descent, "n"));
// a constant that is summed over it
constexpr auto counted = vv::trace([](auto x) { return vv::sum(vv::ones_like(x)); }, spec<double, dim<"n">>);
static_assert(vv::verify(counted) && result(counted).out.sizes.empty());

// sizes are expressions
constexpr auto joined = vv::trace([](auto x, auto y) { return vv::cat(std::tuple(x, y), vv::axis<0>); },
                                  spec<float, dim<"n">>, spec<float, dim<"m">>);
static_assert(result_reads(joined, "n + m"));
constexpr auto flat = vv::trace([](auto x) { return vv::reshape(x, dims{-1}); }, spec<float, dim<"n">, 2, dim<"m">>);
static_assert(result_reads(flat, "2*n*m"));
constexpr auto stacked =
    vv::trace([](auto x) { return vv::cat(std::tuple(x, x), vv::axis<0>); }, spec<float, dim<"n">, 3>);
static_assert(result_reads(stacked, "2*n"));
constexpr auto middle = vv::trace([](auto x) { return vv::slice(x, 0, 2, -3); }, spec<float, dim<"n">>);
static_assert(result_reads(middle, "n - 5") && middle.sizes.guards == 1);
constexpr auto outer = vv::trace([](auto x, auto y) { return vv::reshape(x, dims{-1, 1}) * y; }, spec<float, dim<"n">>,
                                 spec<float, dim<"m">>);
static_assert(result_reads(outer, "n") && reads(outer, result(outer).out.sizes[1], "m"));
constexpr auto gram =
    vv::trace([](auto x) { return vv::matmul(vv::permute(x, dims{1, 0}), x); }, spec<float, 4, dim<"n">>);
static_assert(result(gram).out.sizes == dims{gram.symbol("n"), gram.symbol("n")});

// transforms, branches and in-place code
constexpr auto lanes = vv::trace(vv::vmap(average), spec<float, dim<"n">, dim<"m">>);
static_assert(result_reads(lanes, "n"));
constexpr auto branches = vv::trace(
    [](auto x) {
      return vv::cond(vv::sum(x) > 0.0f, [](auto v) { return v * 2.0f; }, [](auto v) { return v - vv::mean(v); }, x);
    },
    spec<float, dim<"n">>);
static_assert(result_reads(branches, "n") && branches.sizes.regions == 3);
constexpr auto written = vv::trace(
    [](auto x) {
      auto y = vv::clone(x);
      vv::add_(vv::slice(y, 0, 1, 3), 1.0f);
      return y;
    },
    spec<float, dim<"n">>);
static_assert(result_reads(written, "n") && !vv::has_mutation(written));

// what was not symbolic is a number again
constexpr auto large =
    vv::trace([](auto x, auto y) { return vv::mean(x) * vv::sum(y); }, spec<float, 40000>, spec<float, dim<"n">>);
static_assert(vv::verify(large) && [] {
  for (vv::node const& n : large)
    if (n.op == &vv::sym_numel_handle) return false;
  return true;
}());

// equality: of expressions, by the names of symbols
static_assert(vv::equal(m, vv::trace([](auto x) { return vv::mean(x, vv::axis<0>); }, spec<float, dim<"n">, 3>)));
static_assert(!vv::equal(m, vv::trace(average, spec<float, 7, 3>)) &&
              !vv::equal(m, vv::trace(average, spec<float, dim<"m">, 3>)) && vv::equal(m, m.thaw()));
constexpr auto join = [](auto x, auto y) { return vv::cat(std::tuple(x, y), vv::axis<0>); };
static_assert(vv::equal(joined, vv::trace(join, spec<float, dim<"n">>, spec<float, dim<"m">>)) &&
              !vv::equal(joined, vv::trace(join, spec<float, dim<"m">>, spec<float, dim<"n">>)) &&
              !vv::equal(joined, vv::trace(join, spec<float, dim<"n">>, spec<float, dim<"n">>)));

// both forms own their expressions, and passes keep them
constexpr auto again = vv::freeze([] { return vv::optimize(joined.thaw()); });
static_assert(vv::equal(again, joined) && result_reads(again, "n + m"));
constexpr auto reused = vv::freeze([] { return vv::cse(vv::fold(vv::dce(middle.thaw()))); });
static_assert(result_reads(reused, "n - 5") && reused.sizes.guards == 1);
constexpr auto ready = vv::freeze([] {
  vv::graph const g = vv::trace_graph(
      vv::grad([](auto x) { return vv::sum(vv::slice(x, 0, 0, 3)) + 2.0 * vv::sum(vv::slice(x, 0, 3, vv::end)); }),
      spec<double, dim<"n">>.info());
  return vv::prepare(g);
});
static_assert(result_reads(ready, "n") && ready.count(vv::slice_backward) == 0); // the two slices side by side
constexpr auto decomposed = vv::freeze([] {
  vv::graph const g =
      vv::trace_graph(vv::grad([](auto x) { return vv::sum(vv::slice(x, 0, 2, -3)); }), spec<double, dim<"n">>.info());
  return vv::decompose(g, vv::core_decompositions);
});
static_assert(result_reads(decomposed, "n") && decomposed.count(vv::slice_backward) == 0 &&
              decomposed.sizes.guards == 2);
constexpr auto branch = vv::freeze([] { return vv::function_of(branches.thaw(), 2); });
static_assert(result_reads(branch, "n"));

// an expression that no table has is a flaw
constexpr bool finds_a_strange_size() {
  vv::graph g = m.thaw();
  g.nodes[0].out.sizes[0] = vv::extent::entry(5).number();
  return vv::verify(g).what == vv::flaw::size_out_of_range;
}
static_assert(finds_a_strange_size());
constexpr bool finds_a_wrong_size() {
  vv::graph g = joined.thaw();
  g.nodes[2].out.sizes[0] = joined.symbol("n");
  return vv::verify(g).what == vv::flaw::meta_differs;
}
static_assert(finds_a_wrong_size());
