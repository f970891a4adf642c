// SPDX-License-Identifier: BSL-1.0
// Decomposition of graphs that the compiler traced: what is left, in functions of higher-order operators too.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::dims, vv::index_t;

// an operator of the user's: x n times, summed up
inline constexpr struct times_t {
  static constexpr auto op_name = "times";
  template <vv::value X, class N>
  constexpr auto operator()(X const& x, N const& n) const {
    return vv::bind<times_t>(n)(x);
  }
} times{};
template <>
struct vv::rules<times_t> : vv::rule::linear {
  static constexpr vv::op_kind kind = vv::op_kind::view;
  static constexpr vv::meta shape(vv::attributes const&, vv::meta const* in, int) { return {in[0].type, in[0].sizes}; }
};

constexpr auto sum_of_many = vv::decomposition<times_t>([](vv::attributes const& at, auto const& x) {
  auto y = x;
  for (index_t k = 1; k < at[0][0]; ++k) y = vv::add(y, x);
  return y;
});
constexpr auto by_exp =
    vv::decomposition<vv::sigmoid_t>([](auto const& x) { return vv::reciprocal(vv::add(vv::exp(vv::neg(x)), 1)); });
constexpr auto by_times =
    vv::decomposition<vv::neg_t>([](auto const& x) { return vv::sub(times(x, dims{2}), times(x, dims{3})); });

constexpr auto f = [](auto x) { return vv::sigmoid(times(x, dims{3})); };
constexpr auto g = vv::trace(f, vv::spec<double, 4>);
static_assert(g.count(times) == 1 && g.count(vv::sigmoid) == 1);

// the attributes are the operator's
constexpr auto added = vv::freeze([] { return vv::decompose(g, sum_of_many); });
static_assert(vv::verify(added) && added.count(times) == 0 && added.count(vv::add) == 2 &&
              added.count(vv::sigmoid) == 1);
// what a decomposition calls is decomposed as well, in any order of the table
constexpr auto all = vv::freeze([] { return vv::decompose(g, sum_of_many, by_exp, by_times); });
static_assert(vv::verify(all) && all.count(times) == 0 && all.count(vv::sigmoid) == 0 && all.count(vv::neg) == 0 &&
              all.count(vv::add) == 2 + 1 + 1 + 2 && all.count(vv::sub) == 1);
constexpr auto same = vv::freeze([] { return vv::decompose(g, by_times, by_exp, sum_of_many); });
static_assert(vv::equal(all, same));
// without an operator of the table nothing changes; a table is as good as what is in it, and the later of two counts
constexpr auto untouched = vv::freeze([] { return vv::decompose(g, vv::core_decompositions); });
static_assert(vv::equal(untouched, g));
constexpr auto identity = vv::decomposition<times_t>([](auto const& x) { return x; });
constexpr auto constant = vv::decomposition<vv::sigmoid_t>([](auto const& x) { return vv::full_like(x, 0.5); });
constexpr auto later =
    vv::freeze([] { return vv::decompose(g, vv::decomposition_table(sum_of_many, by_exp), identity, constant); });
static_assert(vv::verify(later) && later.operations() == 1 && later.count(vv::expand) == 1);

// functions of higher-order operators, and such that decompositions bring along
constexpr auto branches = vv::trace(
    [](auto x) {
      return vv::cond(
          vv::gt(vv::sum(x), 0),
          [](auto v) {
            return vv::cond(
                vv::lt(vv::sum(v), 9), [](auto w) { return vv::sigmoid(w); }, [](auto w) { return vv::neg(w); }, v);
          },
          [&](auto v) { return vv::sigmoid(v) * vv::sigmoid(x); }, x);
    },
    vv::spec<float, 3>);
constexpr auto by_branch = vv::decomposition<vv::sigmoid_t>([](auto const& x) {
  return vv::cond(
      vv::lt(vv::amax(x, vv::axis<0>), 80), [](auto v) { return vv::reciprocal(vv::add(vv::exp(vv::neg(v)), 1)); },
      [](auto v) { return vv::full_like(v, 1); }, x);
});
constexpr auto branched = vv::freeze([] {
  return vv::decompose(branches, by_branch,
                       vv::decomposition<vv::exp_t>([](auto const& x) { return vv::add(vv::expm1(x), 1); }));
});
static_assert(branches.sizes.regions == 5 && branches.count(vv::sigmoid) == 3);
static_assert(vv::verify(branched) && branched.sizes.regions == 5 + 3 * 2 && branched.count(vv::sigmoid) == 0 &&
              branched.count(vv::exp) == 0 && branched.count(vv::expm1) == 3);
constexpr auto loop = vv::trace(
    [](auto xs) { return vv::scan([](auto c, auto x) { return std::pair{vv::sigmoid(c + x), c}; }, 0.0f, xs); },
    vv::spec<float, 5>);
constexpr auto decomposed_loop = vv::freeze([] { return vv::decompose(loop, by_exp); });
static_assert(vv::verify(decomposed_loop) && decomposed_loop.count(vv::sigmoid) == 0 &&
              decomposed_loop.sizes.regions == loop.sizes.regions);

// elements of array constants come along
constexpr auto table = vv::freeze([] {
  return vv::decompose(
      g, vv::decomposition<times_t>([](auto const& x) { return vv::mul(x, vv::array<double, 4>{1, 3, 2, 7}); }),
      vv::decomposition<vv::sigmoid_t>([](auto const& x) { return vv::add(x, vv::array<double, 4>{4, 0, 5, 1}); }));
});
static_assert(vv::verify(table) && table.sizes.constants == 8 && table.constants[1] == 3 && table.constants[6] == 5);

// symbolic sizes; in-place code
constexpr auto symbolic = vv::trace(f, vv::spec<float, vv::dim<"n">, 3>);
constexpr auto symbolic_exp = vv::freeze([] { return vv::decompose(symbolic, by_exp, sum_of_many); });
static_assert(vv::verify(symbolic_exp) &&
              symbolic_exp.nodes[symbolic_exp.results[0]].out.sizes == dims{symbolic_exp.symbol("n"), 3});
constexpr auto in_place = vv::freeze([] {
  return vv::decompose(g, vv::decomposition<times_t>([](auto const& x) {
                         auto y = vv::clone(x);
                         vv::add_(y, x);
                         return y;
                       }));
});
static_assert(vv::verify(in_place) && !vv::has_mutation(in_place) && in_place.count(vv::add) == 1);

// varve's own set
constexpr auto steps =
    vv::trace(vv::grad([](auto x) { return vv::sum(vv::softplus(vv::slice(x, vv::axis<0>, vv::range<1, 6, 2>))); }),
              vv::spec<double, 7, 2>);
constexpr auto core = vv::freeze([] { return vv::decompose(steps, vv::core_decompositions); });
static_assert(steps.count(vv::slice_backward) == 1 && vv::verify(core) && core.count(vv::slice_backward) == 0 &&
              core.count(vv::log1p_exp) == 0);

// a decomposition that calls its own operator has no end
struct endless {
  static constexpr bool compute() {
    vv::graph const d = vv::decompose(
        g, vv::decomposition<vv::sigmoid_t>([](auto const& x) { return vv::sub(1, vv::sigmoid(vv::neg(x))); }));
    return d.nodes.size() > 0;
  }
};
struct round_about {
  static constexpr bool compute() {
    vv::graph const d = vv::decompose(g, vv::decomposition<vv::sigmoid_t>([](auto const& x) { return vv::tanh(x); }),
                                      vv::decomposition<vv::tanh_t>([](auto const& x) { return vv::sigmoid(x); }));
    return d.nodes.size() > 0;
  }
};
struct of_another_shape {
  static constexpr bool compute() {
    vv::graph const d = vv::decompose(g, vv::decomposition<vv::sigmoid_t>([](auto const& x) { return vv::sum(x); }));
    return d.nodes.size() > 0;
  }
};
static_assert(!vv::evaluates<endless> && !vv::evaluates<round_about> && !vv::evaluates<of_another_shape>);
