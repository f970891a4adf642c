// SPDX-License-Identifier: BSL-1.0
// Texts and files are the same in a program that sets a locale with a decimal comma, as those of Qt and GTK do.
#include "../comma_locale.hpp"
#include "../sample/value.hpp"

#include <varve/autograd/saved_function.hpp>
#include <varve/by_name/all.hpp>
#include <varve/export.hpp>
#include <varve/export/emit_cpp.hpp>
#include <varve/io/csv.hpp>
#include <varve/io/npz.hpp>
#include <varve/mode/all.hpp>
#include <varve/varve.hpp>

#include <map>
#include <sstream>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
struct scaled : vv::function<scaled> {
  static tensor forward(tensor x, double by) { return x * by; }
  static auto setup_context(auto c, auto const&, auto const&) { return c; }
  static auto backward(auto&, tensor g) { return std::tuple(g * 2.5, vv::none); }
};
std::string streamed(auto const& v) {
  std::ostringstream s;
  s << v;
  return s.str();
}
std::string refusal(auto const& f) {
  try {
    f();
  } catch (vv::error const& e) { return e.what(); }
  return "";
}
/// One text of each writer.
std::vector<std::string> all_texts() {
  std::vector<std::string> r;
  tensor const x({0.5, -1.25});
  auto const f = [](tensor const& v) { return scaled::apply(v, 0.125) * 0.25 + tensor({1.5, 1e-7}); };
  for (dtype t : {dtype::float16, dtype::bfloat16, dtype::float32, dtype::complex64, dtype::complex128})
    r.push_back(to_string(vv::to(x, t)));
  r.push_back(to_string(vv::array<double, 2>{0.5, -1.25}));
  (void)vv::grad([&](auto const& v) { return r.push_back(to_string(v)), v * v; })(0.75);
  (void)vv::grad([&](tensor const& v) { return r.push_back(to_string(v)), vv::sum(v * v); })(x);
  r.push_back(to_string(vv::make_fx(f)(x)));
  r.push_back(vv::to_dot(vv::make_fx(f)(x)));
  r.push_back(vv::emit_cpp(vv::make_fx([](tensor const& v) { return v * 0.25 + 0.1; })(x), "name"));
  vv::exported_program const p = vv::export_program(f)(x);
  r.push_back(vv::to_text(p));
  r.push_back(streamed(p));
  auto const draft = vv::draft_export([](tensor const& v) { return v[0].item() > 0.25 ? v : v * 2.0; })(x);
  r.push_back(streamed(draft.report));
  auto const n = vv::dynamic_dim("n", 2, 123456);
  r.push_back(streamed(vv::export_program([](tensor const& v) { return v * 2.0; }, {.dynamic_shapes = {{n}}})(x)));
  r.push_back(refusal([&] {
    vv::gradcheck([](std::vector<tensor> const& v) { return vv::sum(v[0].detach() * v[0]); },
                  {vv::clone(x).requires_grad_()});
  }));
  for (std::string const& name : vv::tree_names(std::map<double, tensor>{{0.5, x}})) r.push_back(name);
  vv::write_csv("varve_locale.csv", tensor({{0.5, 1.0}, {2.0, -3.25}}), {"a", "b"});
  r.push_back(vv::detail::bytes_of_file("test", "varve_locale.csv"));
  vv::call_log log;
  vv::logging_mode logging{log};
  vv::flop_counter_mode flops;
  {
    vv::mode_guard const on{logging};
    vv::mode_guard const too{flops};
    (void)(x * 0.25);
    (void)vv::mm(vv::ones({3, 7}), vv::ones({7, 1000}));
  }
  for (std::string const& line : log.lines) r.push_back(line);
  r.push_back(flops.get_table());
  return r;
}
} // namespace

TEST_CASE("locale: texts have a point, and are read", "[export][io][text]") {
  vv::saved_function<scaled, tensor, double> const known("test.scaled");
  tensor const x({0.5, -1.25});
  std::vector<std::string> const before = all_texts();
  vv::exported_program const p = vv::export_program([](tensor const& v) { return scaled::apply(v, 0.125) * 0.3; })(x);
  std::string const saved = vv::to_text(p);
  vv::profiler_mode profiler;
  comma_locale const german;
  if (!german.is_set()) WARN("no locale with a decimal comma here, and no localedef that makes one");
  std::vector<std::string> const now = all_texts();
  REQUIRE(now.size() == before.size());
  for (std::size_t k = 0; k < now.size(); ++k) {
    CHECK(now[k] == before[k]);
    CHECK_FALSE(now[k].empty());
  }
  CHECK(to_string(x) == "tensor([0.5, -1.25], dtype=float64)");
  CHECK(difference(vv::read_csv("varve_locale.csv").data, tensor({{0.5, 1.0}, {2.0, -3.25}})) == "");
  vv::exported_program const q = vv::program_from_text(saved);
  CHECK(vv::to_text(q) == saved);
  CHECK(difference(q(x)[0], x * 0.125 * 0.3) == "");
  CHECK(difference(vv::ops::call("leaky_relu", {x})[0].as<tensor>(), tensor({0.5, -0.0125})) == "");
  {
    vv::mode_guard const on{profiler};
    (void)(x * x);
  }
  CHECK(profiler.key_averages_table().find(',') == std::string::npos);
}
