// SPDX-License-Identifier: BSL-1.0
// What compile makes of a function: one fused program, steps of which some are fused, or the function as it is.
#include "../sample/value.hpp"

#include <varve/mode/default_dtype_mode.hpp>
#include <varve/nn.hpp>
#include <varve/random.hpp>
#include <varve/varve.hpp>

#include <functional>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using Catch::Contains;

namespace {
struct doubled : vv::function<doubled> { // a function of its own in the graph
  static auto forward(auto x) { return x * 2.0; }
  static auto setup_context(auto const& y, auto const&...) { return y; }
  static auto backward(auto&, auto g) { return g * 2.0; }
};
using function = std::function<tensor(tensor const&, tensor const&)>;
tensor chain(tensor const& x, tensor const& y) {
  tensor const a = x * y, b = a + x, c = b * y, d = c - x, e = d * a;
  return (e + b) * c - d;
}
/// The form of the program for some arguments, whose results are those of the function, in memory of their own.
void check(char const* form, function const& f, tensor const& x, tensor const& y) {
  auto const fast = vv::compile(f);
  for (int k = 0; k < 2; ++k) {
    tensor const found = fast(x, y), right = f(x, y);
    CHECK(found.dtype() == right.dtype());
    CHECK(difference(found, right, 1e-10) == "");
    CHECK_FALSE(found.shares_storage(x));
  }
  CHECK_THAT(fast.explain(x, y), Contains(form));
}
constexpr auto whole = "fused as a whole", as_it_is = "as it is", steps = "are fused";
} // namespace

TEST_CASE("compile: takes the form that is fastest", "[graph][compile]") {
  vv::manual_seed(7);
  tensor const x = vv::randn({100, 100}, dtype::float64), y = vv::randn({100, 100}, dtype::float64),
               few = vv::randn({3}, dtype::float64);
  check(whole, chain, x, y);
  check(as_it_is, [](tensor const& a, tensor const& b) { return a * b; }, few, few);
  check(as_it_is, [](tensor const& a, tensor const&) { return vv::sum(a, 0); }, x, x);
  check(as_it_is, [](tensor const& a, tensor const&) { return vv::softmax(a, 1); }, x, x);
  check(as_it_is, [](tensor const& a, tensor const&) { return vv::layer_norm(a, dims{100}); }, x, x);
  check(steps, [](tensor const& a, tensor const& b) { return vv::sum(chain(a, b), 0); }, x, y);
  check(
      steps, [](tensor const& a, tensor const& b) { return vv::matmul(chain(a, b), vv::transpose(chain(b, a))); }, x,
      y);
  check(
      steps,
      [](tensor const& a, tensor const& b) {
        tensor const s = vv::sum(chain(a, b), vv::dims{1}, true); // a row beside columns, constants, an expansion
        return vv::amax(chain(vv::expand(s, {100, 100}) * 0.25, a - s) + tensor({1.0}), dims{0});
      },
      x, y);
  check(
      steps,
      [](tensor const& a, tensor const& b) {
        return vv::grad([&](tensor const& v) { return vv::sum(vv::tanh(v * b) * v); })(a);
      },
      x, y);
  check(
      steps,
      [](tensor const& a, tensor const& b) {
        return vv::grad([&](tensor const& v) { return vv::sum(vv::tanh(vv::matmul(a, v))); })(b);
      },
      x, y);
  check(
      whole,
      [](tensor const& a, tensor const&) {
        return vv::grad([](tensor const& v) { return vv::sum(v) * vv::sum(v * v); })(a);
      },
      few, few);
  check( // a permutation beside rows
      steps,
      [](tensor const& a, tensor const& b) {
        return vv::vmap([](tensor const& u, tensor const& v) { return chain(u, v); }, vv::in_dims<0, 0>,
                        vv::out_dims<1>)(a, b);
      },
      x, y);
  check( // of slices and arithmetic
      whole,
      [](tensor const& a, tensor const& b) {
        return vv::vmap(vv::jacrev([](tensor const& p, tensor const& q) {
          return vv::stack(std::vector<tensor>{vv::sin(p[0] * q[1]) + p[2], p[3] * vv::exp(p[1]) * q[0]});
        }))(a, b);
      },
      x, y);
  check(
      whole,
      [](tensor const& a, tensor const&) {
        return vv::scan([](tensor const& c, tensor const& r) { return std::pair(c + r, c * r); }, a[0] * 0.0, a).second;
      },
      x, x);
}

TEST_CASE("compile: functions with derivatives of their own", "[graph][compile]") {
  tensor const x = vv::randn({100, 100}, dtype::float64), w = vv::randn({100}, dtype::float64);
  auto const f = [&](tensor const& a, tensor const&) {
    return vv::sum(vv::square(doubled::apply(a)), 0) * doubled::apply(vv::sigmoid(w));
  };
  check("", f, x, x);
}

TEST_CASE("compile: results are fresh in every form", "[graph][compile]") {
  tensor const x = vv::randn({100, 100}, dtype::float64);
  check(steps, [](tensor const& a, tensor const&) { return vv::transpose(a); }, x, x); // a step that is a view
  CHECK_FALSE(vv::compile([](tensor const& a) { return a; })(x).shares_storage(x));
  auto const both = vv::compile([](tensor const& a) {
    tensor const s = vv::sum(a, 0);
    return std::pair(s, vv::reshape(s, {10, 10}));
  })(x);
  CHECK_FALSE(both.first.shares_storage(both.second));
  auto const written = vv::compile([](tensor const& a) { // as it is, such a result is a view of the argument
    tensor const part = vv::slice(a, 0, 0, 2);
    vv::mul_(part, 2.0);
    return part;
  });
  tensor const y = vv::randn({3}, dtype::float64);
  CHECK_FALSE(written(y).shares_storage(y));
  CHECK_FALSE(written(x).shares_storage(x));
}

TEST_CASE("compile: another default dtype is another program", "[graph][compile][dtype]") {
  auto const f = [](tensor const& a) { return a + vv::zeros({3}); };
  auto const g = vv::compile(f);
  tensor const x = vv::ones({3}, dtype::int64);
  CHECK(g(x).dtype() == dtype::float32);
  vv::default_dtype_mode const on{dtype::float64};
  CHECK_THAT(g.explain(x), ContainsText("the default dtype is float64, but was float32"));
  CHECK(g(x).dtype() == dtype::float64);
  CHECK(g.versions() == 2);
}

TEST_CASE("compile: what a traced function may not do is said", "[graph][compile][exception]") {
  tensor const w = vv::ones({2}, dtype::float64);
  w.requires_grad_();
  int hooks = 0;
  auto const hooked = vv::compile([&](tensor const& a) {
    w.register_hook([&hooks](tensor const&) { ++hooks; });
    return vv::sum(a * w);
  });
  CHECK_THROWS_WITH(hooked(tensor{3.0, 4.0}), ContainsText("register it outside of the function"));
  vv::sum(w).backward();
  CHECK(hooks == 0);
  auto const step = vv::compile([&](tensor const& a) {
    tensor const loss = vv::sum(a * w);
    loss.backward();
    return loss;
  });
  CHECK_THROWS_WITH(step(tensor{3.0, 4.0}), ContainsText("inside of a function that is traced"));
}

TEST_CASE("compile: a constant of the program that is a result stays what it is", "[graph][compile]") {
  tensor const x = vv::randn({100, 100}, dtype::float64);
  auto const f = vv::compile([](tensor const& a) {
    return std::tuple(vv::sum(chain(a, a), 0), vv::full({2}, 3.0, dtype::float64) * 1.0, tensor({1.0, 2.0}));
  });
  for (int k = 0; k < 3; ++k) {
    auto const [s, threes, two] = f(x);
    CHECK(elements(threes) == doubles({3, 3}));
    CHECK(elements(two) == doubles({1, 2}));
    vv::add_(threes, 1.0);
    vv::add_(two, 1.0);
  }
}

TEST_CASE("compile: random numbers are drawn in the order of the function", "[graph][compile]") {
  tensor const x = vv::randn({100, 100}, dtype::float64);
  auto const draws = [](tensor const& a) {
    tensor const s = vv::sum(chain(a, a), 0), first = s * vv::rand({100}, dtype::float64);
    return first + vv::rand({100}, dtype::float64);
  };
  auto const f = vv::compile(draws);
  for (int k = 0; k < 2; ++k) {
    vv::manual_seed(4);
    tensor const found = f(x);
    vv::manual_seed(4);
    CHECK(difference(found, draws(x), 1e-9) == "");
  }
}

TEST_CASE("compile: what is written and captured counts in every form", "[graph][compile]") {
  tensor const x = vv::randn({100, 100}, dtype::float64), seen = vv::zeros({100}, dtype::float64);
  for (bool const much : {false, true}) {
    vv::fill_(seen, 0.0);
    auto const f = vv::compile([&](tensor const& a) {
      vv::add_(seen, vv::sum(much ? chain(a, a) : a, 0));
      return vv::sum(a, 1) + seen;
    });
    tensor const step = vv::sum(much ? chain(x, x) : x, 0);
    for (int k = 1; k < 4; ++k) {
      CHECK(difference(f(x), vv::sum(x, 1) + step * double(k), 1e-10) == "");
      CHECK(difference(seen, step * double(k), 1e-10) == "");
    }
    CHECK(seen.version() == (much ? 8u : 4u));
  }
}
