// SPDX-License-Identifier: BSL-1.0
#include "check.hpp"

#include <varve/by_name/all.hpp>
#include <varve/fake.hpp>

#include <algorithm>
#include <filesystem>
#include <varve_test.hpp>

using namespace opinfo;
namespace vv = varve;

namespace {
template <class F>
void for_each_case(std::string const& folder, F const& f) {
  std::vector<std::filesystem::path> files;
  for (auto const& e : std::filesystem::directory_iterator(folder))
    if (e.path().extension() == ".txt") files.push_back(e.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() > 80);
  for (auto const& file : files)
    for (auto const& c : read(file.string(), file.stem().string())) f(c);
}
std::string const data = VARVE_TEST_DIR "/opinfo/data";

/// One assertion per case: there are thousands.
template <class Asks, class Wrong>
void all_are_right(Asks const& asks, Wrong const& wrong, int least) {
  int count = 0;
  for_each_case(data, [&](recorded const& c) {
    if (!asks(c)) return;
    ++count;
    auto const w = wrong(c);
    INFO(c.file << ".txt, case " << c.number << " of " << c.op);
    CHECK(w == "");
  });
  CHECK(count >= least);
}
} // namespace

TEST_CASE("recorded cases: values, dtypes, shapes and the number of results are those of PyTorch", "[opinfo]") {
  all_are_right([](recorded const& c) { return !c.refused; }, wrong_forward, 700);
}
TEST_CASE("recorded cases: gradients are those of PyTorch", "[opinfo]") {
  all_are_right([](recorded const& c) { return !c.vjp.inputs.empty(); }, wrong_vjp, 300);
}
TEST_CASE("recorded cases: tangents are those of PyTorch", "[opinfo]") {
  all_are_right([](recorded const& c) { return !c.jvp.inputs.empty(); }, wrong_jvp, 300);
}
TEST_CASE("recorded cases: what PyTorch refuses is refused by name", "[opinfo]") {
  all_are_right([](recorded const& c) { return c.refused; }, wrong_refusal, 30);
}

TEST_CASE("recorded cases: vmap is the loop over two lanes, of all floating operands and of each", "[opinfo]") {
  all_are_right([](recorded const& c) { return !c.vjp.inputs.empty(); }, wrong_vmap, 1000);
}
TEST_CASE("recorded cases: graphs give for other values what the function gives", "[opinfo]") {
  int refused = 0;
  auto const wrong_or_refused = [&](recorded const& c) -> std::string { // of results whose shape depends on data
    for (char const* op : {"masked_select", "narrow", "repeat_interleave", "tensor_split", "__getitem__", "index_put"})
      if (c.op == op) try {
          return wrong_trace_unguarded(c);
        } catch (vv::transform_error const&) {
          ++refused;
          return "";
        }
    return wrong_trace(c);
  };
  all_are_right([](recorded const& c) { return !c.vjp.inputs.empty(); }, wrong_or_refused, 1000);
  CHECK(refused < 20);
}

namespace {
void alike(vv::fake_mode const& mode, tensor const& fake, tensor const& real, std::string& wrong) {
  if (!mode.owns(fake)) wrong = "no fake tensor";
  else if (fake.dtype() != real.dtype() || !(fake.sizes() == real.sizes())) wrong = "another shape or dtype";
  else if (real.numel() > 1 && !(fake.strides() == real.strides())) wrong = "another layout";
}
/// Fakes of a case and what they give, gradients included, beside the real ones.
std::string wrong_fakes(recorded const& c) {
  return wrong(c, [&] {
    std::string w;
    vv::fake_mode mode;
    recorded of_fakes = c;
    for_tensors(of_fakes, [&](tensor& t) { t = mode.from_tensor(t); });
    vv::fake_mode_guard const on(mode);
    auto const same = [&](auto const& run) {
      auto const fake = run(of_fakes);
      vv::disable_modes const plain;
      auto const real = run(c);
      REQUIRE(fake.size() == real.size());
      for (std::size_t k = 0; k < real.size(); ++k) alike(mode, fake[k], real[k], w);
    };
    same([](recorded const& r) {
      values y;
      for (argument const& a : called(r))
        if (a.is<tensor>()) y.push_back(a.as<tensor>());
      return y;
    });
    if (!c.vjp.inputs.empty())
      same([](recorded const& r) {
        of_places const f{r, r.vjp.inputs, &r.vjp.outputs};
        values cotangents = f(tensors_at(r, r.vjp.inputs));
        for (tensor& t : cotangents) t = vv::ones_like(t);
        return std::get<0>(vv::vjp(f, tensors_at(r, r.vjp.inputs)).second(cotangents));
      });
    return w;
  });
}
/// What makes tensors of none, or whose result's shape depends on data.
bool needs_data(std::string const& op) {
  for (char const* name :
       {"arange", "argwhere", "eye", "full", "item", "masked_select", "nonzero", "ones", "scalar_tensor",
        "tril_indices", "triu_indices", "zeros", "linspace", "logspace", "unique", "unique_consecutive"})
    if (op == name) return true;
  return op.find("signal.") == 0;
}
/// ... only with some arguments, or a result that is a number: there fakes are refused.
bool may_need_data(std::string const& op) {
  for (char const* name : {"__getitem__", "allclose", "bincount", "cov", "equal", "histc", "histogramdd", "index_put",
                           "linspace", "logspace", "narrow", "repeat_interleave", "tensor_split"})
    if (op == name) return true;
  return false;
}
std::string wrong_fakes_or_needs_data(recorded const& c) {
  try {
    if (may_need_data(c.op)) {
      recorded of_fakes = c;
      vv::fake_mode mode;
      for_tensors(of_fakes, [&](tensor& t) { t = mode.from_tensor(t); });
      vv::fake_mode_guard const on(mode);
      (void)called(of_fakes);
    }
  } catch (vv::data_dependent_error const&) { return ""; }
  return wrong_fakes(c);
}
} // namespace

TEST_CASE("recorded cases: fake tensors have the shape, dtype and layout of real ones", "[opinfo][fake]") {
  all_are_right([](recorded const& c) { return !c.refused && !needs_data(c.op); }, wrong_fakes_or_needs_data, 700);
}

// Of a folder with all cases, which are not in the repository: what test/opinfo/refresh runs.
TEST_CASE("recorded cases: what passes", "[.results]") {
  char const* const folder = std::getenv("VARVE_OPINFO_ALL");
  char const* const results = std::getenv("VARVE_OPINFO_RESULTS");
  REQUIRE(folder);
  REQUIRE(results);
  std::ofstream to(results);
  for_each_case(folder, [&](recorded const& c) {
    auto const tell = [&](char const* check, std::string w) {
      std::replace(w.begin(), w.end(), '\n', ' ');
      to << c.file << '\t' << c.number << '\t' << check << '\t' << (w.empty() ? "passed" : "failed") << '\t' << w
         << '\t' << c.op << std::endl;
    };
    if (c.refused) return tell("refused", wrong_refusal(c));
    tell("forward", wrong_forward(c));
    if (!c.vjp.inputs.empty()) tell("vjp", wrong_vjp(c));
    if (!c.jvp.inputs.empty()) tell("jvp", wrong_jvp(c));
    if (!c.vjp.inputs.empty() && wrong_forward(c).empty()) tell("vmap", wrong_vmap(c)), tell("traced", wrong_trace(c));
  });
}
