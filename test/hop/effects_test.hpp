// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Operators that do something outside of the program, and a record of it.
#include "../sample/value.hpp"

#include <varve/aot.hpp>
#include <varve/autograd/checkpoint.hpp>
#include <varve/autograd/function.hpp>
#include <varve/export.hpp>
#include <varve/export/emit_cpp.hpp>
#include <varve/fake.hpp>
#include <varve/functional.hpp>
#include <varve/hop/print.hpp>
#include <varve/hop/switch_case.hpp>
#include <varve/trace/linearize.hpp>
#include <varve/varve.hpp>

#include <filesystem>
#include <functional>
#include <sstream>
#include <varve_test.hpp>

namespace program {
using namespace sample;
namespace vv = varve;
inline std::vector<double> noted;
/// Remembers the sum of the elements of a value.
inline constexpr struct note_t {
  static constexpr auto op_name = "note";
  template <vv::value X>
  constexpr auto operator()(X const& x) const {
    return vv::bind<note_t>()(x);
  }
} note{};
/// A value that is asked of the world: the number of calls until now, added to the operand.
inline int asked = 0;
inline constexpr struct ask_t {
  static constexpr auto op_name = "ask";
  tensor operator()(tensor const& x) const { return vv::bind<ask_t>()(x); }
} ask{};
} // namespace program

template <>
struct varve::rules<program::note_t> : varve::rule::effect<varve::rules<program::note_t>> {
  static constexpr auto schema = "(Tensor self) -> ()";
  template <class T>
  static void run(attributes const&, strided<T const> x) {
    double sum = 0;
    for_each_index(x.sizes, [&](dims const& i) { sum += static_cast<double>(x.at(i)); });
    program::noted.push_back(sum);
  }
};

template <>
struct varve::rules<program::ask_t> {
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr op_kind kind = op_kind::effect;
  static constexpr int arity = 1;
  static constexpr meta shape(attributes const&, meta const* in, int) { return in[0]; }
  template <class R, class T>
  static void compute(attributes const&, strided<R> out, strided<T const> x) {
    ++program::asked;
    varve::for_each_index(x.sizes, [&](dims const& i) { out.at(i) = static_cast<R>(x.at(i) + program::asked); });
  }
  template <class Op, value D, value Y, value X>
  static constexpr auto jvp(arg_t<0>, Op const&, D const& d, Y const&, X const&) {
    return d;
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, auto const&...) {
    return g;
  }
};

namespace effects_test {
using namespace sample;
namespace vv = varve;
using program::noted;
using reals = std::vector<double>;
using lines = std::vector<std::string>;
/// Erased, so that what runs it is compiled once for all.
using function = std::function<tensor(tensor const&)>;

/// What was printed during its life.
class printed {
public:
  printed() : here_(to_) {}
  /// ... since it was asked last.
  lines take() {
    lines r;
    std::istringstream from(to_.str());
    for (std::string l; std::getline(from, l);) r.push_back(l);
    to_.str("");
    return r;
  }

private:
  std::ostringstream to_;
  vv::print_to here_;
};
inline reals take() { return std::exchange(noted, {}); }
inline int count_of(vv::graph const& g, std::string const& name) {
  int n = 0;
  for (vv::node const& nd : g) n += nd.op->name == name;
  return n;
}
/// Names of the operators of the program itself, without getitems.
inline lines names_of(vv::graph const& g) {
  lines r;
  for (int n = 0; n < g.regions[0].node_count; ++n)
    if (g.nodes[n].op != &vv::getitem_handle) r.push_back(g.nodes[n].op->name);
  return r;
}
inline tensor rows() { return vv::reshape(vector_of({1, 2, 3, 4, 5, 6}), dims{3, 2}); }
/// Twice around x + x.
inline function const moo = [](tensor const& x) {
  vv::print("moo");
  tensor const y = x + x;
  vv::print("moo");
  return y;
};
} // namespace effects_test
