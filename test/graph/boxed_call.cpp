// SPDX-License-Identifier: BSL-1.0
// The door at which functions of trees are erased: constants, structures, exceptions, functions without results.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <map>
#include <stdexcept>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
struct weights {
  tensor w, b;
};
tensor doubled(tensor const& x) { return x * 2; }
} // namespace

TEST_CASE("compile: each structure and each constant of the arguments has a program", "[compile]") {
  tensor const x = vv::ones(dims{2, 3}), s = vv::full(dims{}, 3.0);
  auto const f = vv::compile([](weights const& l, std::vector<tensor> const& v, double k) {
    return std::map<int, tensor>{{1, l.w * v[0] + l.b * k}, {2, vv::sum(v.back())}};
  });
  auto r = f(weights{x, s}, std::vector<tensor>{x, x}, 0.0);
  CHECK((r.size() == 2 && vv::sum(r[1]).item() == 6 && r[2].item() == 6));
  r = f(weights{x, s}, std::vector<tensor>{x, x}, 2.0);
  CHECK((vv::sum(r[1]).item() == 42 && f.versions() == 2));
  (void)f(weights{x, s}, std::vector<tensor>{x, x}, -0.0); // another zero
  CHECK(f.versions() == 3);
  (void)f(weights{x, s}, std::vector<tensor>{x}, 2.0); // another number of tensors
  CHECK(f.versions() == 4);
  (void)f(weights{x, s}, std::vector<tensor>{x, x}, 2.0);
  CHECK(f.versions() == 4);
}

TEST_CASE("compile: plain functions, no elements, rank 0, no result", "[compile]") {
  auto const f = vv::compile(doubled);
  CHECK(f(vv::full(dims{}, 3.0)).item() == 6);
  CHECK(f(vv::ones(dims{0, 3})).sizes() == dims{0, 3});
  auto const writes = vv::compile([](tensor const& a) { vv::add_(a, 1.0); });
  tensor const m = vv::ones(dims{3});
  writes(m);
  CHECK(vv::sum(m).item() == 6);
}

TEST_CASE("compile: an exception of the traced function leaves no program and no layer", "[compile]") {
  auto const f = vv::compile([](tensor const& a) -> tensor {
    if (a.dim() == 1) throw std::runtime_error("of the function");
    return a + 1;
  });
  CHECK_THROWS_AS(f(vv::ones(dims{2})), std::runtime_error);
  CHECK(vv::this_thread_state.quiet());
  CHECK(f.versions() == 0);
  CHECK(f(vv::full(dims{}, 3.0)).item() == 4);
}
