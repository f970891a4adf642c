// SPDX-License-Identifier: BSL-1.0
// Which results share memory with which operands: what PyTorch's schema of an operator says (`Tensor(a)`) holds for
// every recorded case, and every host gives what the eager call gives.
#include "check.hpp"

#include <varve/aot.hpp>
#include <varve/compile/compile.hpp>
#include <varve/export.hpp>
#include <varve/export/program_text.hpp>
#include <varve/functional.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <varve_test.hpp>

using namespace opinfo;
namespace vv = varve;

namespace {
template <class F>
void for_each_case(F const& f) {
  std::set<std::filesystem::path> files;
  for (auto const& e : std::filesystem::directory_iterator(VARVE_TEST_DIR "/opinfo/data"))
    if (e.path().extension() == ".txt") files.insert(e.path());
  REQUIRE(files.size() > 80);
  for (auto const& file : files)
    for (auto const& c : read(file.string(), file.stem().string()))
      if (c.expressible && !c.refused && c.op.back() != '_') f(c);
}
/// Schemas of PyTorch that are silent, of operators whose result may be an operand or a view of it all the same.
std::set<std::string> const silent{"atleast_1d",
                                   "atleast_2d",
                                   "atleast_3d",
                                   "broadcast_tensors",
                                   "cartesian_prod",
                                   "einsum",
                                   "meshgrid",
                                   "type_as",
                                   "nn.functional.dropout",
                                   "double",
                                   "float",
                                   "half",
                                   "bfloat16",
                                   "int",
                                   "long",
                                   "short",
                                   "char",
                                   "byte",
                                   "bool",
                                   "sum_to_size",
                                   "histogramdd",
                                   "histogram"};
/// Operators whose result shares memory only where strides or dtypes allow it.
std::set<std::string> const perhaps{"reshape", "reshape_as", "contiguous", "to", "flatten", "ravel"};

bool says_view(std::string const& op) {
  for (std::string const& s : vv::ops::schemas(op))
    if (s.find("(a)", s.find("->")) != std::string::npos) return true;
  return false;
}
values tensors_of(recorded c) {
  values r;
  for_tensors(c, [&](tensor& t) { r.push_back(t); });
  return r;
}
values tensors_among(std::vector<argument> const& y) {
  values r;
  for (argument const& a : y)
    if (a.is<tensor>()) r.push_back(a.as<tensor>());
  return r;
}
std::string wrong_sharing(recorded const& c) {
  values const x = tensors_of(c), y = tensors_among(called(c));
  bool const view = says_view(c.op);
  for (std::size_t k = 0; k < y.size(); ++k) {
    bool shares = false;
    for (tensor const& t : x) shares = shares || y[k].shares_storage(t);
    if (shares && !view && !silent.count(c.op)) return "result " + std::to_string(k) + " shares memory with an operand";
    if (!shares && view && !perhaps.count(c.op) && y[k].numel() > 0)
      return "result " + std::to_string(k) + " is no view";
    if (shares || silent.count(c.op) || c.op == "nonzero") continue; // its columns are those of one matrix
    for (std::size_t j = 0; j < k; ++j)
      if (y[k].shares_storage(y[j])) return "results share memory";
    if (vv::has_derivatives(y[k].dtype())) vv::fill_(y[k], 1.0); // it overlaps itself nowhere
  }
  return "";
}
} // namespace

TEST_CASE("sharing: results share memory with operands where the schema says so", "[opinfo][sharing]") {
  std::map<std::string, std::string> wrong;
  int count = 0;
  for_each_case([&](recorded const& c) {
    try {
      if (std::string const w = wrong_sharing(c); !w.empty()) wrong[c.file + " " + std::to_string(c.number)] = w;
      ++count;
    } catch (vv::error const& e) { wrong[c.file + " " + std::to_string(c.number)] = e.what(); }
  });
  for (auto const& [name, what] : wrong) UNSCOPED_INFO(name << ": " << what);
  CHECK(wrong.size() == 0);
  CHECK(count > 3000);
}

namespace {
/// A case as a function of all its tensors.
struct of_all_tensors {
  recorded c;
  values operator()(values const& v) const {
    recorded with = c;
    std::size_t k = 0;
    for_tensors(with, [&](tensor& t) { t = v[k++]; });
    return tensors_among(called(with));
  }
};
/// A letter for each pair of a result and an operand.
std::string pattern(values const& y, values const& x) {
  std::string s;
  for (tensor const& r : y) {
    for (tensor const& t : x) s += r.shares_storage(t) ? 's' : '.';
    s += ' ';
  }
  return s;
}
struct host {
  char const* name;
  values (*run)(of_all_tensors const& f, values const& x);
  bool fresh = false; // results have memory of their own, whatever the function gives
};
values interpreted(vv::graph const& g, values const& x) {
  vv::boxed_args in;
  for (tensor const& t : x) in.push_back(t);
  values y;
  for (tensor const& t : vv::interpret(g, in)) y.push_back(t);
  return y;
}
host const hosts[] = {
    {"make_fx", [](of_all_tensors const& f, values const& x) { return interpreted(vv::make_fx(f)(x), x); }},
    {"compile", [](of_all_tensors const& f, values const& x) { return vv::compile(f)(x); }, true},
    {"functionalize", [](of_all_tensors const& f, values const& x) { return vv::functionalize(f)(x); }},
    {"aot_function", [](of_all_tensors const& f, values const& x) { return vv::aot_function(f)(x); }},
    {"export and load",
     [](of_all_tensors const& f, values const& x) {
       return values(vv::program_from_text(vv::to_text(vv::export_program(f)(x)))(x));
     }},
};
} // namespace

TEST_CASE("sharing: every host gives what the eager call gives", "[opinfo][sharing]") {
  std::map<std::string, std::string> wrong;
  int count = 0;
  for (host const& h : hosts) {
    std::map<std::string, int> seen;
    for_each_case([&](recorded const& c) {
      values const x = tensors_of(c);
      if (x.empty() || seen[c.file] >= (says_view(c.op) ? 6 : 2)) return;
      for (tensor const& t : x)
        if (t.numel() > 100) return;
      ++seen[c.file];
      std::string const name = h.name + (": " + c.file) + " " + std::to_string(c.number);
      try {
        of_all_tensors const f{c};
        std::string right = pattern(f(x), x);
        std::string const found = pattern(h.run(f, x), x);
        if (h.fresh) std::replace(right.begin(), right.end(), 's', '.');
        if (right != found) wrong[name] = found + "instead of " + right;
        ++count;
      } catch (vv::error const& e) { // some hosts refuse results that depend on data
        if (!vv::this_thread_state.quiet()) wrong[name] = e.what();
      }
    });
  }
  for (auto const& [name, what] : wrong) UNSCOPED_INFO(name << ": " << what);
  CHECK(wrong.size() == 0);
  CHECK(count > 1000);
}
