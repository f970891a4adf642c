// SPDX-License-Identifier: BSL-1.0
// Drafts of programs: what an export refuses is in a report, and is checked in each run.
#include "../sample/value.hpp"

#include <varve/export.hpp>
#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <limits>
#include <sstream>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::draft_export, vv::export_program, vv::dynamic_dim, vv::dim_auto;
using kind = vv::draft_finding::kind;

namespace {
tensor data(dims const& sizes, double from = 0.1) {
  tensor const t = tensor::empty(sizes, dtype::float64);
  for (index_t k = 0; k < t.numel(); ++k) set(t, k, from + 0.3 * static_cast<double>(k % 7));
  return t;
}
tensor number(index_t n) { return vv::full(dims{}, n, dtype::int64); }
std::string text(auto const& v) {
  std::ostringstream s;
  s << v;
  return s.str();
}
} // namespace

TEST_CASE("draft_export: what export_program takes is no finding", "[export][EX-17]") {
  auto const f = [](tensor x) { return vv::sin(x) * vv::mean(x); };
  auto const n = dynamic_dim("n");
  auto const [p, report] = draft_export(f, {.dynamic_shapes = {{n}}})(data({4}));
  CHECK(report.success());
  CHECK(report.complete());
  CHECK(text(report) == "nothing was found: export_program gives the same program\n");
  CHECK(vv::equal(p.graph, export_program(f, {.dynamic_shapes = {{n}}})(data({4})).graph));
  CHECK(difference(p(data({7}))[0], f(data({7})), 1e-14) == "");
}

TEST_CASE("draft_export: what data decide is as for the example, and checked", "[export][EX-17]") {
  auto const checked = [](auto const& f, auto const& example, auto const& other, int findings = 1) {
    CHECK_THROWS_AS(export_program(f)(example), vv::error);
    auto const [p, report] = draft_export(f)(example);
    CHECK(report.count(kind::data_dependent) == findings);
    CHECK(static_cast<int>(report.findings.size()) == findings);
    CHECK(report.complete());
    CHECK(text(report).find("checked in each run") != std::string::npos);
    CHECK(difference(p(example)[0], f(example), 1e-14) == "");
    CHECK_THROWS_AS(p(other), vv::shape_error);
    return p;
  };
  // Truth values, of floats compared and of bools.
  auto const p = checked([](tensor x) { return vv::sum(x) > 0.0 ? x * 2.0 : x; }, data({4}), data({4}, -5));
  CHECK(difference(p(data({4}, 3))[0], data({4}, 3) * 2.0, 1e-14) == "");
  checked([](tensor x) { return vv::sum(x) > 0.0 ? x * 2.0 : x; }, data({4}, -5), data({4}));
  // Numbers: integers and floats, of views and of what was written.
  checked([](tensor n) { return vv::full(dims{3}, 1.0) * static_cast<double>(n.item<std::int64_t>()); }, number(4),
          number(5));
  checked([](tensor x) { return x * vv::select(x, 0, 1).item(); }, data({4}), data({4}, 2));
  auto const not_a_number = [](tensor x) {
    double const v = vv::sum(vv::log(x)).item();
    return v != v ? x : x + v;
  };
  auto const q = draft_export(not_a_number)(data({2}, -9)).program;
  CHECK(difference(q(data({2}, -9))[0], data({2}, -9)) == "");
  CHECK_THROWS_AS(q(data({2}, 1)), vv::shape_error);
  checked(
      [](tensor x) {
        tensor const y = vv::clone(x);
        vv::add_(vv::slice(y, 0, 0, 2), 1.0);
        return vv::select(y, 0, 1) > 1.0 ? y : x;
      },
      data({4}), data({4}, -3));
  // ... inside of transforms, where the function takes gradients, and with parameters that require some.
  checked(vv::grad([](tensor v) { return vv::sum(v) > 0.0 ? vv::sum(v * v) : vv::sum(v); }), data({4}), data({4}, -5));
  checked(
      [](tensor v) {
        tensor const leaf = v.detach();
        leaf.requires_grad_();
        vv::sum(leaf * leaf).backward();
        return vv::sum(leaf.grad()) > 0.0 ? leaf.grad() * v : v;
      },
      data({4}), data({4}, -5));
  checked(
      [](tensor v) {
        tensor const t = vv::permute(v, vv::axis<1, 0>);
        return vv::select(vv::select(t, 0, 1), 0, 2).item() > 0.4 ? vv::clone(t) : t * 2.0;
      },
      data({3, 2}), data({3, 2}, -9));
  // Sizes that data tell.
  checked(
      [](tensor x) {
        if (vv::nonzero(x).sizes()[0] > 2) return vv::cos(x);
        return vv::sin(x);
      },
      data({4}), vv::zeros({4}, dtype::float64));
  auto const r = checked(
      [](tensor n) {
        vv::extent const k = vv::item(n);
        index_t loops = 0;
        while (k > loops) ++loops;
        return vv::full(dims{loops}, 1.0);
      },
      number(3), number(4), 4);
  CHECK(r(number(3))[0].sizes() == dims{3});
}

TEST_CASE("draft_export: a size of 0 in the example, which traces take for 2 or more", "[export][EX-17]") {
  auto const f = [](tensor x) { return vv::nonzero(vv::gt(x, 0.5)).sizes()[0] == 0 ? x : x * 2.0; };
  auto const report = draft_export(f)(data({4}, -9)).report;
  CHECK(report.count(kind::data_dependent) >= 1);
  CHECK(text(report).find("a size of 0 or 1") != std::string::npos);
  CHECK(draft_export(f)(data({6})).report.success());
}

TEST_CASE("draft_export: nothing of the user's is touched, and no mode sees what is computed beside",
          "[export][EX-17]") {
  tensor count = vv::zeros(dims{}, dtype::float64);
  tensor const x = data({4});
  auto const f = [&](tensor v) {
    vv::add_(count, 1.0);
    vv::mul_(v, 3.0);
    tensor const noise = vv::randn(dims{4}, dtype::float64);
    return vv::sum(noise) > 100.0 || vv::clone(count).item() > 5.0 ? v : v + count;
  };
  auto const reads = [&](tensor v) { return count.item() > 5.0 ? v : v + count; };
  CHECK_THROWS_WITH(export_program(reads, {.state = {vv::buffer("count", count)}})(x), ContainsText("reads count"));
  CHECK_THROWS_WITH(draft_export(reads, {.state = {vv::buffer("count", count)}})(x), ContainsText("reads count"));
  vv::manual_seed(5);
  auto const state = vv::default_generator;
  auto const [p, report] = draft_export(f, {.state = {vv::buffer("count", count)}})(x);
  CHECK(vv::default_generator.offset == state.offset);
  CHECK(count.item() == 0);
  CHECK(difference(x, data({4})) == "");
  CHECK(x.version() == 0);
  CHECK(report.count(kind::data_dependent) == 2);
  tensor const a = data({4});
  CHECK(difference(p(a)[0], data({4}) * 3.0 + 1.0, 1e-14) == "");
  CHECK(count.item() == 1);
  CHECK_THROWS_AS(p(a), vv::shape_error); // it was 1 in the draft
  CHECK(count.item() == 1);
}

TEST_CASE("draft_export: promises about sizes that the function does not keep", "[export][EX-17]") {
  auto const n = dynamic_dim("n"), m = dynamic_dim("m");
  auto const fixed = [](tensor x) { return x + data({4}); };
  vv::export_options const how{.dynamic_shapes = {{n}}};
  auto const [p, report] = draft_export([](tensor x) { return x + vv::zeros({4}, dtype::float64); }, how)(data({4}));
  CHECK(report.count(kind::constraint_violated) == 1);
  CHECK(text(report).find("n must be 4 (since ") != std::string::npos); // and who asks for it
  CHECK(text(report).find("Suggested fixes: n = 4") != std::string::npos);
  CHECK(p(data({4}))[0].sizes() == dims{4});
  CHECK_THROWS_AS(p(data({5})), vv::shape_error);
  auto const sum =
      draft_export([](tensor x, tensor y) { return x + y; }, {.dynamic_shapes = {{n}, {m}}})(data({4}), data({4}));
  CHECK(text(sum.report).find("Suggested fixes: m = n") != std::string::npos);
  CHECK(sum.program(data({6}), data({6}))[0].sizes() == dims{6});
  CHECK_THROWS_AS(sum.program(data({6}), data({5})), vv::shape_error);
  auto const range = draft_export([](tensor x) { return x.sizes()[0] > 9 ? x : x * 2.0; }, how)(data({4}));
  CHECK(range.report.count(kind::constraint_violated) == 1);
  CHECK(difference(range.program(data({9}))[0], data({9}) * 2.0) == "");
  CHECK_THROWS_AS(range.program(data({10})), vv::shape_error);
  // Specifications that do not fit the examples are errors, in drafts too.
  CHECK_THROWS_AS(draft_export(fixed, {.dynamic_shapes = {{dynamic_dim("k", 6)}}})(data({4})), vv::value_error);
}

TEST_CASE("draft_export: operators that no graph can call", "[export][EX-17]") {
  vv::library lib("draft");
  lib.def("doubled(Tensor x) -> Tensor");
  lib.impl("doubled", vv::dispatch_key::cpu, [](tensor const& x) -> tensor { return x + x; });
  auto const f = [](tensor x) {
    tensor const y = vv::ops::call("draft::doubled", x);
    return vv::sum(y) > 0.0 ? y : x;
  };
  CHECK_THROWS_AS(export_program(f)(data({4})), vv::missing_rule);
  auto const [p, report] = draft_export(f)(data({4}));
  CHECK(!report.complete());
  CHECK(report.count(kind::missing_rule) >= 1);
  CHECK(report.count(kind::data_dependent) == 1); // what comes behind is found too
  auto const& draft = p;
  CHECK_THROWS_WITH(draft(data({4})), ContainsText("no graph can call"));
  CHECK_THROWS_WITH(vv::to_text(draft), ContainsText("no graph can call"));
}

TEST_CASE("draft_export: what nobody knows is refused", "[export][EX-17][exception]") {
  auto const f = [](tensor x) {
    tensor const y = vv::map([](tensor v) { return v * 2.0; }, x);
    return vv::sum(y) > 0.0 ? y : x;
  };
  CHECK_THROWS_AS(draft_export(f)(data({4})), vv::data_dependent_error);
  CHECK(vv::this_thread_state.quiet());
}
