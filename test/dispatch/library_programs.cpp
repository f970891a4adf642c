// SPDX-License-Identifier: BSL-1.0
// Operators that a library defines, in programs: traced, compiled, fused, exported, functionalized.
#include "../sample/value.hpp"

#include <varve/aot.hpp>
#include <varve/compile/compile.hpp>
#include <varve/export.hpp>
#include <varve/varve.hpp>

#include <string_view>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::dispatch_key;

namespace {

/// x times a number, by a kernel that looks at elements, so that no trace can look inside.
tensor scaled_elements(tensor const& x, dims const& by) {
  tensor const y = vv::clone(x);
  for (vv::index_t k = 0; k < y.numel(); ++k) y.data<double>()[k] *= static_cast<double>(by[0].number());
  return y;
}
tensor meta_of_scaled(tensor const& x, dims const&) { return tensor::meta(x.sizes(), x.dtype()); }
tensor program(tensor const& x) { return vv::ops::call("programs::scaled", x + 1.0, dims{3}) * x; }
int count_of(vv::graph const& g, char const* name) {
  int n = 0;
  for (auto const& nd : g.nodes) n += std::string_view(nd.op->name) == name;
  return n;
}
struct with_library {
  vv::library lib{"programs"};
  with_library() {
    lib.def("scaled(Tensor x, int[] by) -> Tensor");
    lib.impl("scaled", dispatch_key::cpu, &scaled_elements);
  }
};
} // namespace

TEST_CASE("library: an operator that only computes is a node of graphs", "[dispatch][library][graph]") {
  with_library const with;
  tensor const x = from({1, 2, -3}, {3});
  vv::graph const g = vv::make_fx(&program)(x);
  CHECK(count_of(g, "programs::scaled") == 1);
  CHECK(vv::verify(g));
  CHECK(difference(vv::interpret(g, vv::boxed_args(x))[0], program(x)) == "");
  CHECK(difference(vv::interpret(vv::optimize(g), vv::boxed_args(x))[0], program(x)) == "");
  tensor const other = from({-4, 0.5, 7}, {3});
  CHECK(difference(vv::fuse(g)(vv::boxed_args(other))[0], program(other)) == "");
  auto const compiled = vv::compile(&program);
  CHECK(difference(compiled(x), program(x)) == "");
  CHECK(difference(compiled(other), program(other)) == "");
  auto const rows = [](tensor const& v) { return vv::map(&program, v); };
  tensor const m = from({1, 2, 3, 4}, {2, 2});
  CHECK(difference(vv::compile(rows)(m), program(m)) == "");
}

TEST_CASE("library: kernels may have a state, calls are not joined", "[dispatch][library][graph]") {
  vv::library lib("programs");
  int calls = 0;
  lib.def("counted(Tensor x) -> Tensor");
  lib.impl("counted", dispatch_key::cpu, [&calls](tensor const& x) -> tensor { return x + double(++calls); });
  auto const f = [](tensor const& x) {
    tensor const first = vv::ops::call("programs::counted", x);
    return first - vv::ops::call("programs::counted", x);
  };
  tensor const x = from({1, 2}, {2});
  vv::graph const g = vv::optimize(vv::make_fx(f)(x));
  CHECK(count_of(g, "programs::counted") == 2);
  CHECK(elements(vv::interpret(g, vv::boxed_args(x))[0]) == std::vector<double>{-1, -1});
}

TEST_CASE("library: functionalize passes operators that only compute", "[dispatch][library][functionalize]") {
  with_library const with;
  auto const f = [](tensor const& x) {
    tensor const y = vv::ops::call("programs::scaled", x, dims{2});
    vv::add_(y, 1.0);
    vv::mul_(x, 2.0);
    return y + vv::ops::call("programs::scaled", x, dims{2});
  };
  tensor const x = from({1, 2}, {2}), written = vv::clone(x), expected = vv::clone(x);
  CHECK(difference(vv::functionalize(f)(written), f(expected)) == "");
  CHECK(difference(written, expected) == "");
  CHECK(difference(vv::compile(f)(written), f(expected)) == "");
  CHECK(difference(written, expected) == "");
}

TEST_CASE("library: programs of fake values want a kernel for shapes", "[dispatch][library][export]") {
  with_library with;
  tensor const x = from({1, 2, -3}, {3});
  auto const n = vv::dynamic_dim("n");
  vv::export_options const sizes{.dynamic_shapes = {{n}}};
  CHECK_THROWS_WITH(vv::export_program(&program, sizes)(x), ContainsText("programs::scaled") && ContainsText("meta"));
  CHECK_THROWS_WITH(vv::compile(&program, vv::backends::aot_eager)(x), ContainsText("meta"));
  with.lib.impl("scaled", dispatch_key::meta, &meta_of_scaled);
  CHECK(difference(vv::compile(&program, vv::backends::aot_eager)(x), program(x)) == "");
  vv::exported_program const p = vv::export_program(&program, sizes)(x);
  CHECK(count_of(p.graph, "programs::scaled") == 1);
  vv::exported_program const read = vv::program_from_text(vv::to_text(p));
  tensor const wide = from({1, 2, 3, 4, 5}, {5});
  CHECK(difference(p(wide)[0], program(wide)) == "");
  CHECK(difference(read(wide)[0], program(wide)) == "");
}

TEST_CASE("library: derivatives of a program take the operator's own rule", "[dispatch][library][grad]") {
  with_library with;
  tensor const x = from({1, 2, -3}, {3});
  vv::graph const g = vv::make_fx(&program)(x);
  auto const run = [&](tensor const& v) { return vv::sum(vv::interpret(g, vv::boxed_args(v))[0]); };
  CHECK_THROWS_WITH(vv::grad(run)(x), ContainsText("programs::scaled has no rule for grad"));
  with.lib.impl("scaled", dispatch_key::autograd,
                [](vv::boxed_op const& op, vv::dispatch_key_set, vv::boxed_args const& a) -> tensor {
                  return a[0] * static_cast<double>((*op.at)[0][0].number()) + a[0] * 0.5; // not what the kernel does
                });
  auto const eager = [](tensor const& v) { return vv::sum(program(v)); };
  CHECK(difference(vv::grad(run)(x), vv::grad(eager)(x)) == "");
  CHECK(difference(vv::grad(vv::compile(eager))(x), vv::grad(eager)(x)) == "");
}

TEST_CASE("library: what writes or gives views is in no graph, nor what has ended", "[dispatch][library][graph]") {
  tensor const x = from({1, 2}, {2});
  vv::graph g;
  {
    with_library with;
    g = vv::make_fx(&program)(x);
    with.lib.def("grown(Tensor(a!) x) -> Tensor(a!)");
    with.lib.impl("grown", dispatch_key::cpu, [](tensor const& a) -> tensor { return vv::add_(a, 1.0); });
    with.lib.def("seen(Tensor(a) x) -> Tensor(a)");
    with.lib.impl("seen", dispatch_key::cpu, [](tensor const& a) -> tensor { return vv::reshape(a, dims{2, 1}); });
    for (char const* name : {"programs::grown", "programs::seen"})
      CHECK_THROWS_WITH(vv::make_fx([&](tensor const& v) { return vv::ops::call(name, v * 1.0); })(x),
                        ContainsText(name) && ContainsText("trace"));
  }
  CHECK_THROWS_AS(vv::interpret(g, vv::boxed_args(x)), vv::missing_rule);
  with_library const again;
  CHECK(difference(vv::interpret(g, vv::boxed_args(x))[0], program(x)) == "");
}
