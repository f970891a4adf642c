// SPDX-License-Identifier: BSL-1.0
// The recorded cases with compact operands: float16 and bfloat16 give what float32 gives for the same numbers, rounded;
// int16 what int64 gives, as far as it fits.
#include "check.hpp"

#include <varve/by_name/all.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <varve_test.hpp>

using namespace opinfo;
namespace vv = varve;

namespace {
/// A case whose tensors of a category are converted; undefined where it has none.
bool convert(recorded& c, int category, dtype through, dtype to) {
  bool any = false;
  auto const now = [&](tensor& t) {
    if (vv::category(t.dtype()) != category) return;
    t = vv::to(vv::to(t, through), to);
    any = true;
  };
  for_tensors(c, now);
  return any;
}
bool asks_for_a_dtype(recorded const& c) {
  auto const is_dtype = [](argument const& a) { return a.is<dtype>(); };
  return std::any_of(c.arguments.begin(), c.arguments.end(), is_dtype) ||
         std::any_of(c.named.begin(), c.named.end(), [&](auto const& n) { return is_dtype(n.value); });
}
struct outcome {
  int same = 0, refused = 0;
  std::map<std::string, std::string> wrong;
};
/// Is each element near what float32 gives: within some steps of the dtype, relative to the greatest of the tensor?
std::string far(tensor const& mine, tensor const& right, dtype t, double steps) {
  if (right.dtype() == dtype::float32 ? mine.dtype() != t : mine.dtype() != right.dtype())
    return std::string("dtype ") + vv::name(mine.dtype());
  if (!(mine.sizes() == right.sizes())) return "another shape";
  double const step = t == dtype::float16 ? 0x1p-10 : 0x1p-7;
  double greatest = 0;
  for (double const v : elements(right))
    if (std::isfinite(v)) greatest = std::max(greatest, std::abs(v));
  for (index_t k = 0; k < mine.numel(); ++k) {
    double const a = element(mine, k), b = element(vv::to(right, mine.dtype()), k), exact = element(right, k);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - exact) <= steps * step * std::max(greatest, 0x1p-14)))
      return "element " + std::to_string(k) + " is " + std::to_string(a) + " instead of " + std::to_string(exact);
  }
  return "";
}
template <class F>
void for_each_case(F const& f) {
  std::vector<std::filesystem::path> files;
  for (auto const& e : std::filesystem::directory_iterator(VARVE_TEST_DIR "/opinfo/data"))
    if (e.path().extension() == ".txt") files.push_back(e.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() > 80);
  for (auto const& file : files)
    for (auto const& c : read(file.string(), file.stem().string()))
      if (c.expressible && !c.refused && !asks_for_a_dtype(c)) f(c);
}
std::vector<bool> shared(recorded c, std::vector<argument> const& y) {
  std::vector<bool> r;
  for (argument const& a : y)
    for_tensors(c, [&](tensor& t) { r.push_back(a.is<tensor>() && a.as<tensor>().shares_storage(t)); });
  return r;
}
/// A conversion of its own gives another dtype than float32, or the operand itself.
bool converts(recorded const& c) { return c.op == "float" || c.op == "half" || c.op == "bfloat16"; }
/// The neighbour of a compact float is refused by name (test/op/compact.cpp): that of float32 is another number.
bool is_of_own_dtype(recorded const& c) { return c.op == "nextafter"; }
/// Is an element beyond what an integer dtype holds, so that it wraps around?
bool too_great(tensor const& x, dtype t) {
  if (vv::category(t) != 1) return false;
  std::vector<double> const all = elements(x);
  return std::any_of(all.begin(), all.end(), [](double v) { return v < -32768 || v > 32767; });
}
outcome run(int category, dtype t, dtype wide) {
  outcome r;
  for_each_case([&](recorded const& of) {
    if (category == 2 && (is_of_own_dtype(of) || of.op.starts_with("fft."))) return; // of float32 and float64 alone
    recorded narrow = of, right = of;
    if (!convert(narrow, category, t, t)) return;
    convert(right, category, t, wide);
    std::string const name = of.file + " " + std::to_string(of.number);
    std::vector<argument> b;
    try {
      b = called(right);
    } catch (vv::error const&) { return; }
    try {
      auto const a = called(narrow);
      std::string wrong = a.size() == b.size() ? "" : "another number of results";
      for (std::size_t k = 0; k < a.size() && wrong.empty(); ++k)
        if (a[k].is<tensor>() && b[k].is<tensor>())
          wrong = converts(of) || too_great(b[k].as<tensor>(), t) ? ""
                  : category == 2                                 ? far(a[k].as<tensor>(), b[k].as<tensor>(), t, 4)
                                  : difference(vv::to(a[k].as<tensor>(), vv::dtype::float64),
                                               vv::to(b[k].as<tensor>(), vv::dtype::float64), 1e-6);
      if (wrong.empty() && category == 2 && !converts(of) && shared(narrow, a) != shared(right, b))
        wrong = "views of other operands";
      if (wrong.empty()) ++r.same;
      else r.wrong[name] = wrong;
    } catch (vv::error const& e) {
      ++r.refused;
      std::string const text = e.what(); // indices are int64; the sum of integers is, so that it is not added to others
      if (category == 1 && (text.find("index") != text.npos || text.find("addbmm") != text.npos)) return;
      r.wrong[name] = std::string("REFUSED ") + e.what();
    }
  });
  return r;
}
} // namespace

TEST_CASE("recorded cases in float16", "[opinfo][compact]") {
  outcome const r = run(2, dtype::float16, dtype::float32);
  for (auto const& [name, what] : r.wrong) UNSCOPED_INFO(name << ": " << what);
  CHECK(r.wrong.size() == 0);
  CHECK(r.same > 2000);
}
TEST_CASE("recorded cases in bfloat16", "[opinfo][compact]") {
  outcome const r = run(2, dtype::bfloat16, dtype::float32);
  for (auto const& [name, what] : r.wrong) UNSCOPED_INFO(name << ": " << what);
  CHECK(r.wrong.size() == 0);
  CHECK(r.same > 2000);
}
TEST_CASE("recorded cases in int16", "[opinfo][compact]") {
  outcome const r = run(1, dtype::int16, dtype::int64);
  for (auto const& [name, what] : r.wrong) UNSCOPED_INFO(name << ": " << what);
  CHECK(r.wrong.size() == 0);
  CHECK(r.same > 200);
}
