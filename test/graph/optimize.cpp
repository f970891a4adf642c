// SPDX-License-Identifier: BSL-1.0
// Optimized graphs compute what the function does.
#include "../sample/apart.hpp"
#include "../sample/value.hpp"

#include <varve/special.hpp>
#include <varve/varve.hpp>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <varve_test.hpp>
#include <vector>

using namespace sample;
namespace vv = varve;
using vv::boxed_args;

TEST_CASE("folding: a tensor of rank 0 counts in dtypes as before", "[graph][optimize]") {
  tensor const x = from({0.25, 1.25, 1.75}, {3}, dtype::float64);
  auto const by = [&](auto const& one) {
    auto const f = [one](tensor const& v) { return v * (one() / vv::count_nonzero(v)); };
    vv::graph const g = vv::make_fx(f)(x);
    CHECK(difference(vv::interpret(vv::optimize(g), vv::boxed_args(x))[0], f(x)) == "");
    CHECK(difference(vv::compile(f)(x), f(x)) == "");
  };
  by([] { return vv::to(vv::reshape(vv::arange(1), vv::dims{}) == 0, dtype::float64); });
  by([] { return vv::reshape(vv::ones({1}, dtype::float64), vv::dims{}); });
  by([] { return vv::to(vv::reshape(vv::ones({1, 1}), vv::dims{}), dtype::float64); });
  by([] { return vv::full({}, 1.0, dtype::float64); });
}

TEST_CASE("what a graph returns, or writes into an argument, is as it was before it writes into others",
          "[graph][optimize][functionalize]") {
  auto const same = [](auto const& f) {
    auto const arguments = [] { return std::vector{vector_of({-1, 2, -3, 4}), vector_of({5, -6, 7, -8})}; };
    auto const a = arguments(), traced = arguments();
    tensor const y = f(a[0], a[1]);
    vv::graph const g = vv::make_fx(f)(traced[0], traced[1]);
    for (vv::graph const& h :
         {vv::functionalize(g), vv::fold(vv::functionalize(g)), vv::optimize(g), vv::optimize(vv::optimize(g))}) {
      auto const b = arguments();
      CHECK(vv::verify(h));
      CHECK(elements(vv::interpret(h, boxed_args(b[0], b[1]))[0]) == elements(y));
      CHECK(elements(b[0]) == elements(a[0]));
      CHECK(elements(b[1]) == elements(a[1]));
    }
  };
  auto const after = [&](auto const& old) { // a copy of an argument, which is written then
    same([old](tensor const& v, tensor const& w) {
      tensor const r = old(v);
      vv::relu_(v), vv::add_(w, 1.0);
      return r;
    });
  };
  after([](tensor const& v) { return vv::clone(v); });
  after([](tensor const& v) { return v * 1.0; });
  after([](tensor const& v) { return v / 1.0; });
  after([](tensor const& v) { return -(-v); });
  after([](tensor const& v) { return vv::where(v > 0.0, v, v); });
  after([](tensor const& v) { return vv::reshape(vv::clone(vv::slice(v, 0, 1, 3)), dims{2, 1}); });
  after([](tensor const& v) { return vv::copy_(vv::zeros(dims{4}, dtype::float64), v); });
  after([](tensor const& v) {
    auto const g = [](tensor const& u) { return u * 1.0; };
    return vv::cond(vv::sum(v) > 0.0, g, g, v);
  });
  same([](tensor const& v, tensor const& w) { // each becomes the other
    tensor const old = vv::clone(v);
    vv::copy_(v, w), vv::copy_(w, old);
    return old;
  });
  same([](tensor const& v, tensor const& w) { // the value of another argument, which is written later
    vv::copy_(v, w), vv::mul_(w, 2.0);
    return v;
  });
  // What nobody writes is no copy.
  vv::graph const g = vv::optimize(vv::make_fx([](tensor const& v, tensor const& w) {
    vv::add_(v, 1.0);
    return vv::reshape(w, {1, 1});
  })(vector_of({1}), vector_of({2})));
  for (auto const& n : g.nodes) CHECK(std::string(n.op->name) != "clone");
}

TEST_CASE("optimize: branches behind branches are asked once each what they show", "[graph][optimize]") {
  tensor const x = from({0.5, -1.5}, {2}), written = from({1, 2}, {2});
  auto const f = [](tensor const& v, tensor const& w, tensor const& z) {
    tensor a = v, b = w;
    for (int k = 0; k < 60; ++k) { // 2^60 ways from the result to the arguments
      auto const [c, d] = vv::cond(
          vv::sum(a) > 0.0, [](tensor const& p, tensor const& q) { return std::tuple(p * 1.0, q * 1.0); },
          [](tensor const& p, tensor const& q) { return std::tuple(q * 1.0, p * 1.0); }, a, b);
      a = c, b = d;
    }
    vv::mul_(z, 2.0);
    return a;
  };
  vv::graph const g = vv::optimize(vv::make_fx(f)(x, x * 2.0, vv::clone(written)));
  tensor const one = vv::clone(written), two = vv::clone(written);
  CHECK(difference(vv::interpret(g, vv::boxed_args(x, tensor(x * 2.0), one))[0], f(x, x * 2.0, two)) == "");
  CHECK(difference(one, two) == "");
}

TEST_CASE("temporaries without elements share no place with others", "[fuse][plan]") {
  tensor const x = vector_of({0.5, 1, 2}), nothing = vv::zeros({3, 0}, dtype::float64),
               bytes = vv::zeros({3}, dtype::uint8);
  auto const first = [&](tensor const& v) { // its pullback gives what nobody reads for all others
    auto const row = [](std::vector<tensor> const& r) { return r[0]; };
    return vv::map(row, std::vector<tensor>{v, nothing, bytes, x});
  };
  auto const jacobian = vv::jacrev(first, vv::chunk_size{2});
  CHECK(elements(vv::compile([&](tensor const& v) { return jacobian(v); })(x)) == doubles({1, 0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST_CASE("a value of rank 0 that a number was written into is no number", "[graph][optimize]") {
  tensor const x = vector_of({1.5, 0.25}), y = vv::to(x, dtype::float32);
  auto const f = [](tensor const& v) {
    tensor const s = vv::select(v * 1.0, 0, 0);
    vv::fill_(s, 1.5);
    return vv::erf(vv::exp(s) * 0.5) + 1.0;
  };
  vv::graph const g = vv::optimize(vv::make_fx(f)(y));
  CHECK(vv::interpret(g, vv::boxed_args(y))[0].dtype() == dtype::float32);
  CHECK(vv::compile(f)(y).dtype() == dtype::float32);
  CHECK(difference(vv::interpret(g, vv::boxed_args(y))[0], f(y), 1e-6) == "");
}

TEST_CASE("optimize: constants are computed in the dtype of the operator", "[graph][pass][dtype]") {
  tensor const x{1.0f, 2.0f, 3.0f};
  constexpr auto few = [] { return tensor{0.1f, 0.5f, 3.0f}; }; // made inside, so that they are constants
  constexpr auto whole = [] { return tensor{16777217L, 1L, 2L}; };
  std::function<tensor(tensor const&)> const programs[] = {
      [=](tensor const& v) { return vv::where(few() == 0.1, v, v * 0.0); },
      [=](tensor const& v) { return vv::where(whole() == 16777216.0, v, v * 0.0); },
      [=](tensor const& v) { return (few() * 0.3 + 0.1) * v; },
      [=](tensor const& v) { return vv::remainder(few(), 0.1) + v; },
      [=](tensor const& v) { return vv::maximum(few(), 0.1) - v; },
      [](tensor const& v) { return v * (vv::full({3}, 0.1) * 0.3 == 0.03); },
  };
  for (auto const& f : programs) {
    vv::graph const g = vv::make_fx(f)(x);
    tensor const expected = f(x);
    CHECK(vv::all(tensor(vv::interpret(vv::fold(g), boxed_args(x))[0]) == expected).item<bool>());
    CHECK(vv::all(tensor(vv::interpret(vv::optimize(g), boxed_args(x))[0]) == expected).item<bool>());
    CHECK(vv::all(vv::compile(f)(x) == expected).item<bool>());
  }
}
