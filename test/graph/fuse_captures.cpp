// SPDX-License-Identifier: BSL-1.0
#include "../sample/apart.hpp"
#include "../sample/value.hpp"

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor twice(tensor const& x) { return x * 2; }
} // namespace

TEST_CASE("fuse: a function that captures is compiled for tensors", "[fuse][compile]") {
  tensor const x = from({1, 2, 3, 4, 5, 6}, {2, 3}, dtype::float32), w = from({1, -1, 2}, {3}, dtype::float32);
  double const k = 0.5;
  auto const f = [&w, k](auto const& v) { return vv::sum(vv::tanh(v * w) * k, vv::axis<1>); };
  auto const fast = vv::fuse(f);
  CHECK(elements(fast(x)) == elements(vv::compile(f)(x)));
  CHECK(fast.versions() == 1);
  CHECK(elements(fast(x)) == elements(vv::compile(f)(x)));
  CHECK(fast.versions() == 1); // planned once
  (void)fast(vv::to(x, vv::type<double>));
  CHECK(fast.versions() == 2); // once for each dtype and shape
  {
    noting m;
    vv::mode_guard on(m);
    (void)fast(x);
    CHECK(m.calls > 1); // where somebody watches it runs operator by operator
  }
  vv::fill_(w, 0); // what is in captured tensors counts at each call
  CHECK(elements(fast(x)) == std::vector<double>{0, 0});
  auto const copy = fast; // shares what was made
  (void)copy(x);
  CHECK(copy.versions() == 2);
}

TEST_CASE("fuse: captures in transforms, tables, function pointers, results in trees", "[fuse][compile]") {
  tensor const x = from({1, 2, 3}, {3}, dtype::float64), w = from({0.5, -1, 2}, {3}, dtype::float64);
  auto const loss = [w](auto const& v) { return vv::sum(vv::exp(v * w)); };
  CHECK(elements(vv::fuse(vv::grad(loss))(x)) == elements(vv::compile(vv::grad(loss))(x)));
  CHECK(elements(vv::grad(vv::fuse(loss))(x)) == elements(vv::grad(loss)(x))); // below a transform f itself runs
  CHECK(elements(vv::fuse(loss, vv::table_driven)(x)) == elements(vv::fuse(loss)(x)));
  CHECK(elements(vv::fuse(&twice)(x)) == std::vector<double>{2, 4, 6});
  auto const [sum, all] =
      vv::fuse([w](auto const& a, auto const& b) { return std::pair(a + b, std::vector{a * w, b}); })(x, w);
  CHECK(elements(sum) == std::vector<double>{1.5, 1, 5});
  CHECK(elements(all[0]) == std::vector<double>{0.5, -2, 6});
  auto const fill = vv::fuse([w](auto v) {
    vv::mul_(v, w);
    return v;
  });
  tensor const y = vv::clone(x);
  CHECK(elements(fill(y)) == std::vector<double>{0.5, -2, 6});
  CHECK(elements(y) == std::vector<double>{0.5, -2, 6}); // its argument is written into
  CHECK_THROWS_AS(vv::fuse([w](auto const& v) { return vv::matmul(v, w); })(from({1, 2}, {2}, dtype::float64)),
                  vv::shape_error);
  double memory[] = {1, 2, 3};
  CHECK(elements(vv::fuse([w](auto const& a, auto const& b) { return a * w + b; })(
            vv::tensor_ref<double, vv::dyn>(memory, {3}), x)) == std::vector<double>{1.5, 0, 9});
  auto const step = vv::fuse(loss);
  step.prepare(x);
  CHECK(step.versions() == 1);
}

TEST_CASE(
    "compile: a function that decides by a traced value is refused, since its program would be the one for this value",
    "[compile][make_fx]") {
  tensor const x = from({-1, -2}, {2}, dtype::float32);
  auto const by_number = [](tensor const& v) { return vv::sum(v).item<float>() > 0 ? v * 2 : v * 3; };
  auto const by_truth = [](tensor const& v) { return vv::sum(v) > 0 ? v * 2 : v * 3; };
  CHECK_THROWS_AS(vv::compile(by_number)(x), vv::transform_error);
  CHECK_THROWS_AS(vv::compile(by_truth)(x), vv::transform_error);
  CHECK_THROWS_AS(vv::make_fx(by_number)(x), vv::transform_error);
  CHECK_THROWS_AS(vv::make_fx(vv::grad(
                      [](tensor const& v) { return vv::sum(v).item<float>() > 0 ? vv::sum(v) : vv::sum(v * v); }))(x),
                  vv::transform_error);
  CHECK(vv::this_thread_state.quiet());
  bool const up = x.dim() > 0; // numbers of the program may decide
  CHECK(elements(vv::compile([up](tensor const& v) { return up ? v * 2 : v * 3; })(x)) == std::vector<double>{-2, -4});
  CHECK(elements(by_truth(x)) == std::vector<double>{-3, -6});
}

TEST_CASE("compile: what enable_grad records in no_grad mode has its gradient", "[compile][autograd]") {
  tensor const x = vector_of({1, 2, 3}), w = vector_of({2, -1, 0.5});
  x.requires_grad_(), w.requires_grad_();
  auto const f = vv::compile([&](tensor const& v) {
    vv::enable_grad const on;
    return vv::sum(v * v * w);
  });
  for (tensor const& v : {x.detach(), x, x}) { // one that requires no gradient comes first
    tensor y;
    {
      vv::no_grad const off;
      y = f(v);
    }
    y.backward();
  }
  CHECK(elements(x.grad()) == std::vector<double>{8, -8, 6});
  CHECK(elements(w.grad()) == std::vector<double>{3, 12, 27});
  tensor const plain = w.detach();
  auto const none = vv::compile([&](tensor const& v) {
    vv::enable_grad const on;
    return vv::sum(v * v * plain);
  });
  vv::no_grad const off;
  CHECK_FALSE(none(plain).requires_grad());
  CHECK(none.versions() == 1);
}
