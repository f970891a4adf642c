// SPDX-License-Identifier: BSL-1.0
// Scenarios of functionalize (docs/scenarios.md): what programs give, what they write into their argument, and which
// operators a trace of them holds, in their order.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <functional>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
using program = std::function<tensor(tensor const&)>;
using names = std::vector<std::string>;
bool same(tensor const& a, tensor const& b) { return difference(a, b, 0).empty(); }
names operators(vv::graph const& g) {
  names r;
  for (auto const& n : g)
    if (n.op->kind != vv::op_kind::placeholder && n.op->kind != vv::op_kind::constant) r.push_back(n.op->name);
  return r;
}
/// Runs a program as it is, functionalized, and traced so, on equal arguments; the results, and what the argument is
/// then, must be equal. Gives the trace.
vv::graph check(program const& f, tensor const& x, std::vector<double> const& result,
                std::vector<double> const& written) {
  tensor const eager = vv::clone(x), functional = vv::clone(x), traced = vv::clone(x), made = vv::clone(x);
  CHECK(elements(f(eager)) == result);
  CHECK(elements(eager) == written);
  CHECK(elements(vv::functionalize(f)(functional)) == result);
  CHECK(elements(functional) == written);
  vv::graph g = vv::make_fx(vv::functionalize(f))(made);
  CHECK(elements(vv::interpret(g, vv::boxed_args(traced))[0]) == result);
  CHECK(elements(traced) == written);
  for (auto const& n : g)
    if (n.op->kind == vv::op_kind::mutation) CHECK(&n == g.end() - 1); // the one that writes back
  CHECK(vv::this_thread_state.quiet());
  return g;
}
std::vector<double> all(std::size_t n, double v) { return std::vector<double>(n, v); }
tensor const ones42 = vv::ones({4, 2});
} // namespace

TEST_CASE("functionalize: a write into a view of the argument", "[transform][functionalize][FN-S01]") {
  auto const f = [](tensor const& x) {
    tensor const t = vv::ones({4, 2}), y = vv::reshape(x, dims{4, 2});
    vv::add_(y, t);
    tensor const unused = x * x;
    return y;
  };
  CHECK(operators(check(f, ones42, all(8, 2), all(8, 2))) ==
        names{"full", "reshape", "add", "reshape", "mul", "reshape", "copy_"});
}

TEST_CASE("functionalize: a write into the argument, seen by a view", "[transform][functionalize][FN-S02]") {
  auto const f = [](tensor const& x) {
    tensor const y = vv::reshape(x, dims{4, 2});
    vv::add_(x, vv::ones({4, 2}));
    return y;
  };
  CHECK(operators(check(f, ones42, all(8, 2), all(8, 2))) == names{"reshape", "full", "add", "reshape", "copy_"});
}

TEST_CASE("functionalize: a write into the diagonal", "[transform][functionalize][FN-S04][FN-S05]") {
  auto const diagonal = [](tensor const& x) { return vv::as_strided(x, dims{2}, dims{3}); };
  auto const of_argument = [&](tensor const& x) {
    tensor const one = vv::ones({2});
    vv::add_(diagonal(x), one);
    return x;
  };
  CHECK(operators(check(of_argument, vv::ones({2, 2}), {2, 1, 1, 2}, {2, 1, 1, 2})) ==
        names{"full", "as_strided", "add", "as_strided_scatter", "copy_"});
  auto const of_a_copy = [&](tensor const& x) {
    vv::add_(diagonal(vv::clone(x)), vv::ones({2}));
    return tensor(x * x);
  };
  auto const g = check(of_a_copy, vv::ones({2, 2}), all(4, 1), all(4, 1));
  for (auto const& name : operators(g)) CHECK(name != "copy_");
}

TEST_CASE("functionalize: a write into one of several rows", "[transform][functionalize][FN-S08]") {
  auto const f = [](tensor const& x) {
    tensor const y = vv::transpose(x, 0, 1);
    vv::add_(vv::unbind(y, 0)[0], vv::ones({4}));
    return y;
  };
  check(f, ones42, {2, 2, 2, 2, 1, 1, 1, 1}, {2, 1, 2, 1, 2, 1, 2, 1});
}

TEST_CASE("functionalize: a write into a part of what the program makes", "[transform][functionalize][FN-S09]") {
  auto const f = [](tensor const&) {
    tensor const t = vv::zeros({10});
    vv::fill_(vv::select(t, 0, 5), 1);
    return t;
  };
  auto const g = check(f, vv::ones({2}), {0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, {1, 1});
  for (auto const& name : operators(g)) CHECK(name != "copy_");
}

TEST_CASE("functionalize: two views see one write", "[transform][functionalize][FN-S10]") {
  auto const f = [](tensor const& x) {
    tensor const y = vv::reshape(x, dims{-1}), z = vv::reshape(x, dims{-1});
    vv::add_(x, 1);
    CHECK(vv::sum(y).sizes() == dims{});
    return tensor(z + 1);
  };
  check(f, vv::ones({4}), all(4, 3), all(4, 2));
}

TEST_CASE("functionalize: a write outlives the view", "[transform][functionalize][FN-S11]") {
  auto const f = [](tensor const& x) {
    vv::add_(vv::select(x, 0, 0), 1);
    return tensor(x + x);
  };
  check(f, vv::ones({2, 2}), {4, 4, 2, 2}, {2, 2, 1, 1});
}

TEST_CASE("functionalize: what is written keeps the dtype of its memory", "[transform][functionalize][FN-S12]") {
  auto const f = [](tensor const& x) {
    tensor const y = vv::clone(x);
    return vv::copy_(y, vv::ge(y, 0.0));
  };
  tensor const x = from({-1, 2}, {2}, dtype::float32);
  auto const g = check(f, x, {0, 1}, {-1, 2});
  CHECK(operators(g) == names{"clone", "ge", "to"});
  CHECK(vv::functionalize(f)(x).dtype() == dtype::float32);
}

TEST_CASE("functionalize: a copy keeps the strides of what is copied into", "[transform][functionalize][FN-S21]") {
  auto const f = [](tensor const& x) { // its own rows lie five apart
    tensor const y = vv::as_strided(vv::empty({10}), dims{2, 2}, dims{5, 1});
    return vv::copy_(y, x);
  };
  tensor const x = from({1, 2, 3, 4}, {2, 2}, dtype::float32);
  check(f, x, {1, 2, 3, 4}, {1, 2, 3, 4});
  CHECK(f(x).strides() == dims{5, 1});
  CHECK(vv::functionalize(f)(x).strides() == dims{5, 1});
}

TEST_CASE("functionalize: an argument is written back once", "[transform][functionalize][FN-S27]") {
  auto const f = [](tensor const& x) {
    tensor const t = vv::ones({2}), y = vv::reshape(x, dims{4, 2});
    vv::add_(y, t);
    return x;
  };
  auto const g = check(f, vv::zeros({4, 2}), all(8, 1), all(8, 1));
  CHECK(g.count(vv::copy_) == 1);
}

TEST_CASE("functionalize: a captured tensor is returned as it is", "[transform][functionalize][FN-S29]") {
  tensor const kept = from({1, 2, 3}, {3});
  auto const f = [&](tensor const&) { return kept; };
  tensor const y = vv::functionalize(f)(vv::ones({2}));
  CHECK(y.is(kept));
  CHECK_FALSE(y.is_wrapped());
}

TEST_CASE("functionalize: where its key is excluded", "[transform][functionalize][FN-S30]") {
  vv::exclude_keys const off(vv::dispatch_key::functionalize);
  auto const f = [](tensor const& x) {
    tensor const y = vv::clone(x);
    return vv::sin_(y);
  };
  tensor const x = from({0.5, 1}, {2});
  auto const g = vv::make_fx(vv::functionalize(f))(x);
  CHECK(operators(g) == names{"clone", "sin"});
  CHECK(same(vv::interpret(g, vv::boxed_args(x))[0], vv::sin(x)));
  CHECK(vv::this_thread_state.excluded.has(vv::dispatch_key::functionalize));
}
