// SPDX-License-Identifier: BSL-1.0
// Leaves that are views, inputs that are none, and what else backward takes.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor leaf_of(tensor const& t) {
  tensor const x = vv::clone(t.detach());
  x.requires_grad_();
  return x;
}
tensor number(double v) { return from({v}, {}, dtype::float64); }
} // namespace

TEST_CASE("a leaf that is a view keeps its gradient", "[autograd][view]") {
  auto const refused = ContainsText("add_: a view of a leaf that requires grad, which is a view itself");
  for (bool recorded : {false, true}) {
    tensor const base = from({1, 1, 1, 1}, {4}, dtype::float64);
    tensor const leaf = [&] {
      vv::set_grad_enabled const mode(recorded);
      return tensor(vv::slice(base, 0, 0, 2));
    }();
    leaf.requires_grad_();
    tensor const part = vv::slice(leaf, 0, 0, 1);
    CHECK_THROWS_WITH(vv::add_(part, 1.0), refused);
    CHECK_THROWS_WITH(vv::add_(vv::reshape(part, dims{1, 1}), 1.0), refused);
    CHECK(elements(base) == doubles({1, 1, 1, 1}));
    CHECK(base.version() == 0);
    {
      vv::no_grad const off;
      vv::add_(part, 1.0);
    }
    vv::sum(leaf * leaf).backward();
    CHECK(elements(leaf.grad()) == doubles({4, 2}));
    leaf.requires_grad_(false); // no leaf, no care
    tensor const other = leaf_of(number(2));
    vv::mul_(vv::slice(leaf, 0, 0, 1), other);
    vv::sum(leaf).backward();
    CHECK(other.grad().item<double>() == 2);
  }
  tensor const base = from({1, 1, 1, 1}, {4}, dtype::float64), leaf = vv::slice(base, 0, 0, 2);
  leaf.requires_grad_();
  tensor const before = vv::sum(leaf * 3.0);
  vv::mul_(base, leaf_of(number(2)));
  CHECK_THROWS_WITH(leaf * 2.0, ContainsText("a leaf that requires grad is a view of a tensor that was written into"));
  before.backward();
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("backward takes inputs that are no leaves", "[autograd][backward]") {
  tensor const x = leaf_of(from({1, 2, 3}, {3}, dtype::float64)), y = x * 2.0, z = vv::sum(y * y);
  vv::autograd::backward<>({z}, {}, {.retain_graph = true}, {y});
  CHECK(elements(y.grad()) == doubles({4, 8, 12}));
  CHECK_FALSE(x.grad().defined());
  vv::autograd::backward<>({z}, {}, {.retain_graph = true}, {y, x, y}); // added up, once
  CHECK(elements(y.grad()) == doubles({8, 16, 24}));
  CHECK(elements(x.grad()) == doubles({8, 16, 24}));
  z.backward(); // retains nothing of its own
  CHECK(elements(y.grad()) == doubles({8, 16, 24}));
  CHECK(elements(x.grad()) == doubles({16, 32, 48}));
}

TEST_CASE("small faults of eager autograd", "[autograd]") {
  tensor const x = leaf_of(number(2)), other = leaf_of(number(3));
  auto const zero = vv::autograd::grad<>({x * x}, {other}, {}, {}, vv::autograd::unused::zeros)[0];
  CHECK(zero.requires_grad());
  CHECK(zero.is_leaf());
  CHECK(zero.item<double>() == 0);
  tensor made;
  {
    vv::inference_mode const on;
    made = vv::zeros({2});
    made.requires_grad_();
    CHECK(made.requires_grad());
    made = vv::zeros({2});
  }
  CHECK_THROWS_WITH(made.requires_grad_(), ContainsText("made in inference mode"));
  tensor escaped;
  (void)vv::grad([&](tensor const& v) {
    escaped = v * 2.0;
    CHECK(escaped.level() == 1);
    return v * 1.0;
  })(number(2));
  CHECK(escaped.level() == -1);
  CHECK(number(2).level() == 0);
}
