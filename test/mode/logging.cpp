// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/mode/logging_mode.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
using texts = std::vector<std::string>;
template <class F>
texts logged(F const& f) {
  vv::call_log log;
  vv::logging_mode mode{log};
  {
    vv::mode_guard const on{mode};
    f(log);
  }
  return log.lines;
}
template <class F>
texts operators_of(F const& f) {
  vv::call_log log;
  vv::logging_mode mode{log};
  vv::mode_guard const on{mode};
  f();
  return log.operators();
}
} // namespace

// --- what PyTorch's logging mode writes: test_python_dispatch.py. Operators carry no `torch._ops.aten.` and no
// overload here.

TEST_CASE("logging: the log of a product and its gradient is PyTorch's", "[mode][logging]") { // test_basic
  tensor const x = from({3}, {1}, dtype::float32), dy = from({1}, {1}, dtype::float32);
  tensor y, dx;
  auto const lines = logged([&](vv::call_log& log) {
    log.log_input("x", x);
    auto const pulled = vv::vjp([](auto const& v) { return v * v; }, x);
    y = pulled.first;
    log.log_input("grad_y", dy);
    dx = std::get<0>(pulled.second(dy));
  });
  CHECK(lines == texts{"$0: f32[1] = input('x')", "$1: f32[1] = mul($0, $0)", "$2: f32[1] = input('grad_y')",
                       "$3: f32[1] = mul($2, $0)", "$4: f32[1] = mul($2, $0)", "$5: f32[1] = add($3, $4)"});
  CHECK(element(dx, 0) == 6);
}

TEST_CASE("logging: a factory and plain tensors are one line each", "[mode][logging][MD-S06][MD-S07]") {
  tensor const x = from({1}, {}), y = from({2}, {});
  tensor r[2];
  CHECK(logged([&](auto&) { r[0] = vv::empty({}); }) == texts{"$0: f32[] = empty(size=[], dtype=float32)"});
  CHECK(logged([&](auto&) { r[1] = x + y; }) == texts{"$2: f64[] = add($0, $1)"});
}

TEST_CASE("logging: nested modes write two lines per operator, with the same numbers",
          "[mode][logging][MD-S08][MD-S13]") {
  tensor const x = from({1}, {}), y = from({2}, {});
  vv::call_log log;
  vv::logging_mode outer{log}, inner{log};
  tensor a, b;
  {
    vv::mode_guard const on{outer};
    vv::mode_guard const too{inner};
    a = vv::empty({});
    b = x + y;
  }
  CHECK(log.lines == texts{"$0: f32[] = empty(size=[], dtype=float32)", "$0: f32[] = empty(size=[], dtype=float32)",
                           "$3: f64[] = add($1, $2)", "$3: f64[] = add($1, $2)"});
  log.clear();
  {
    vv::mode_guard const on{outer};
    vv::mode_guard const twice{outer};
    a = vv::empty({});
  }
  CHECK(log.lines.size() == 2);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("logging: a scope without dispatch is not seen", "[mode][logging][MD-S17]") {
  auto const once = operators_of([] { (void)vv::ones({1}); });
  auto const with_hidden = operators_of([] {
    (void)vv::ones({1});
    vv::no_dispatch const off;
    (void)vv::ones({1});
  });
  CHECK(once == texts{"full"});
  CHECK(once == with_hidden);
}

TEST_CASE("logging: every tensor a gradient makes was seen", "[mode][logging][MD-S18]") {
  struct made_here {
    std::vector<tensor> seen;
    bool all = true;
    void operator()(vv::call_record const& c) {
      for (int k = 0; k < c.operand_count; ++k) {
        bool found = c.operands[k].number;
        for (auto const& t : seen) found = found || t.is(*c.operands[k].handle);
        all = all && found;
      }
      for (int k = 0; k < c.result_count; ++k) seen.push_back(*c.results[k].handle);
    }
  } sink;
  tensor const x = from({1, 2, 3}, {3});
  sink.seen.push_back(x);
  vv::logging_mode mode{sink};
  vv::mode_guard const on{mode};
  (void)vv::grad([](auto const& v) { return vv::sum(v * v); })(x);
  CHECK(sink.all);
  CHECK(sink.seen.size() > 4);
}

TEST_CASE("logging: operators on version counters, views and detach",
          "[mode][logging]") { // test_version, test_detach_appears_twice_when_called_once
  tensor const x = from({1, 2, 3}, {3});
  tensor v, d, c;
  auto const lines = logged([&](auto&) {
    v = vv::reshape(x, dims{3, 1});
    (void)vv::add_(x, 1);
    d = vv::detach(x); // PyTorch writes two of these, and calls it a mistake of its own
    c = vv::clone(v);
    (void)vv::sum(x, 0, true);
  });
  CHECK(lines == texts{"$1: f64[3, 1] = reshape($0, shape=[3, 1])   # view of $0", "$0 = add_($0, 1)   # writes $0",
                       "$2: f64[3] = detach($0)   # view of $0", "$3: f64[3, 1] = clone($1)",
                       "$4: f64[1] = sum($0, dim=[0], keepdim=true)"});
}

// --- what is varve's own

TEST_CASE("logging: composites are their parts, to a function mode the public call", "[mode][logging]") {
  tensor const w = from({1, 2, 3, 4, 5, 6}, {2, 3}), x = from({1, 0, 2}, {3}), y = from({1, 2}, {2});
  CHECK(operators_of([&] { (void)vv::dot(x, x); }) == texts{"mul", "sum"});
  CHECK(operators_of([&] { (void)vv::relu(vv::matmul(w, x) + y); }) ==
        texts{"reshape", "mm", "reshape", "add", "relu"});
  CHECK(operators_of([&] { (void)vv::mean(vv::sigmoid(x)); }) == texts{"sigmoid", "sum", "div"});
  vv::call_log log;
  vv::logging_mode mode{log};
  vv::function_mode_guard const on{mode}; // nearer to PyTorch's own list, whose kernels these are
  (void)vv::mean(vv::softmax(vv::matmul(w, x), 0));
  CHECK(log.operators() == texts{"matmul", "softmax", "mean"});
}

TEST_CASE("logging: below vmap and grad it sees batched calls, above them levels", "[mode][logging]") {
  tensor const x = from({1, 2}, {2});
  auto const below = logged([&](auto&) { (void)vv::vmap(vv::grad([](auto const& v) { return v * v * v; }))(x); });
  REQUIRE(below.size() > 4);
  CHECK(below[0] == "$1: f64[2] = mul($0, $0)");
  vv::call_log log(nullptr, false);
  vv::logging_mode mode{log};
  {
    vv::pre_dispatch_guard const on{mode};
    (void)vv::vmap(vv::grad([](auto const& v) { return v * v; }))(x);
  }
  CHECK(log.lines.front() == "f64[]@2 = mul(f64[]@2, f64[]@2)");
}

TEST_CASE("logging: lets go of tensors that nobody else has", "[mode][logging]") {
  vv::call_log log;
  vv::logging_mode mode{log};
  vv::mode_guard const on{mode};
  tensor const x = from({1, 2}, {2});
  auto const* const refs = &x.id()->refs.n;
  for (int k = 0; k < 100; ++k) (void)(x + x);
  CHECK(refs->load() == 2); // x, and the log
  CHECK(log.lines.back() == "$100: f64[2] = add($0, $0)");
  log.clear();
  CHECK(refs->load() == 1);
}

TEST_CASE("logging: a call that throws is noted, and the mode goes on", "[mode][logging][exception]") {
  tensor const x = from({1, 2}, {2}), y = from({1, 2, 3}, {3});
  auto const lines = logged([&](auto&) {
    CHECK_THROWS_AS(x + y, vv::shape_error);
    CHECK_THROWS_AS(vv::vmap(vv::grad([&](auto const& v) { return vv::sum(v * y + x); }))(x), vv::shape_error);
    (void)(x + x);
  });
  CHECK(vv::this_thread_state.quiet());
  CHECK(lines.front() == "add($0, $1)   # threw");
  CHECK(lines.back().find("add($0, $0)") != std::string::npos);
}

TEST_CASE("logging: static values by one text, a higher-order operator as one call", "[mode][logging]") {
  vv::call_log log;
  vv::logging_mode mode{log};
  auto f = [](auto const& v) { return vv::sum(vv::sin(v) * 2.0); };
  (void)vv::with(mode, f, vv::array<double, 3>{1, 2, 3});
  CHECK(log.lines ==
        texts{"f64[3] = sin(f64[3])", "f64[3] = mul(f64[3], 2)", "f64[] = sum(f64[3], dim=[0], keepdim=false)"});
  tensor const x = from({1, 2}, {2});
  auto const lines = operators_of([&] {
    (void)vv::cond(
        vv::gt(vv::sum(x), 0), [](auto const& v) { return vv::sin(v); }, [](auto const& v) { return vv::cos(v); }, x);
  });
  CHECK(lines == texts{"sum", "gt", "sin", "cond"});
}

TEST_CASE("logging: to a file, as it runs", "[mode][logging]") {
  std::FILE* const f = std::tmpfile();
  REQUIRE(f);
  vv::call_log log(f);
  vv::logging_mode mode{log};
  {
    vv::mode_guard const on{mode};
    (void)vv::exp(vv::ones({2}));
  }
  std::rewind(f);
  char line[128] = {};
  CHECK(std::fgets(line, sizeof line, f));
  CHECK(std::string(line) == "$0: f32[2] = full(size=[2], 1, dtype=float32)\n");
  CHECK(log.lines.empty());
  std::fclose(f);
}
