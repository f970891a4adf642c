// SPDX-License-Identifier: BSL-1.0
// No operator without a row: the names in the headers against the names in the table.
#include "op.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <varve_test.hpp>

namespace {
using names = std::set<std::string>;

names in_headers() {
  names found;
  // `} add{};` ends the object of an operator; `op_name = "add"` names a primitive one.
  std::regex const object(R"(^\} ([a-z_0-9]+)\{\};)"), primitive(R"re(op_name = "([a-z_0-9]+)")re");
  std::vector<std::filesystem::path> files{std::filesystem::path(VARVE_TEST_DIR).parent_path() /
                                           "include/varve/fwd.hpp"};
  for (auto const& f : std::filesystem::directory_iterator(files[0].parent_path() / "op")) files.push_back(f.path());
  for (auto const& f : files) {
    std::ifstream in(f);
    for (std::string line; std::getline(in, line);) {
      std::smatch m;
      if (std::regex_search(line, m, primitive) || std::regex_search(line, m, object)) found.insert(m[1]);
    }
  }
  return found;
}
// Operators without operands to sample, or that write: `test/op/factory.cpp`, `test/op/in_place.cpp`; or that give
// several values: `test/op/view.cpp`; or depend on data: `test/op/nonzero.cpp`; or take an index for each dimension:
// `test/hop/flex_attention.cpp`.
names const elsewhere{"empty",         "full",           "arange",        "randn",
                      "get_rng_state", "full_op",        "arange_op",     "randn_op",
                      "copy_",         "add_",           "sub_",          "mul_",
                      "div_",          "neg_",           "exp_",          "sin_",
                      "cos_",          "tanh_",          "sqrt_",         "sigmoid_",
                      "relu_",         "fill_",          "zero_",         "log_",
                      "abs_",          "clamp_",         "set_",          "unbind",
                      "split",         "chunk",          "index",         "_local_scalar_dense",
                      "local_scalar",  "nonzero_static", "scalar_tensor", "scalar_tensor_op",
                      "element_at"};
} // namespace

// Composites of other folders have no sample: PyTorch's recorded cases test them by name, and `test/composite` in both
// worlds. These have no recorded case, or go by another name there.
names const unrecorded{"binary_cross_entropy",
                       "gradient_along",
                       "im2col",
                       "trapezoid",
                       "isinf",
                       "isnan",
                       "max_along",
                       "min_along",
                       "std_dev",
                       "split_at",
                       "selu",
                       "softsign",
                       "hardtanh",
                       "hardsigmoid",
                       "softsign",
                       "mse_loss",
                       "huber_loss",
                       "bmm",
                       "unflatten",
                       "smooth_l1_loss",
                       "fmin",
                       "trace_of_matrix",
                       "vector_norm",
                       "block_diag",
                       "cosine_similarity",
                       "gradient_over",
                       "heaviside",
                       "logit",
                       "nan_to_num",
                       "pad",
                       "pdist",
                       "tile",
                       "triplet_margin_with_distance_loss"};

names objects_in(std::filesystem::path const& folder) {
  names found;
  std::regex const object(R"(^\} ([a-z_0-9]+)\{\};)");
  for (auto const& f : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(f.path());
    std::smatch m;
    for (std::string line; std::getline(in, line);)
      if (std::regex_search(line, m, object)) found.insert(m[1]);
  }
  return found;
}

TEST_CASE("samples: no composite lacks a recorded case and a call in both worlds", "[sample]") {
  std::filesystem::path const tests(VARVE_TEST_DIR), headers = tests.parent_path() / "include/varve";
  names all = objects_in(headers / "composite"), recorded;
  all.merge(objects_in(headers / "nn"));
  REQUIRE(all.size() > 100);
  for (auto const& f : std::filesystem::directory_iterator(tests / "opinfo/data")) {
    std::string const name = f.path().stem().string(); // nn.functional.elu, var.unbiased
    std::istringstream parts(name);
    for (std::string part; std::getline(parts, part, '.');) recorded.insert(part);
  }
  std::string calls;
  for (auto const& f : std::filesystem::directory_iterator(tests / "composite"))
    if (f.path().stem().string().rfind("both_worlds", 0) == 0) {
      std::ifstream in(f.path());
      calls.append((std::istreambuf_iterator<char>(in)), {});
    }
  for (auto const& name : all) {
    INFO(name);
    CHECK((recorded.count(name) == 1 || unrecorded.count(name) == 1));
    CHECK(calls.find("vv::" + name + "(") != calls.npos);
  }
}

TEST_CASE("samples: no operator lacks a row", "[sample]") {
  std::vector<sample::row> table;
  auto const visit = sample::collect(table);
  sample::visit_pointwise(visit);
  sample::visit_reductions(visit);
  sample::visit_views(visit);
  sample::visit_regions(visit);
  sample::visit_convolutions(visit);
  names have;
  for (auto const& r : table) have.insert(r.name);
  names const all = in_headers();
  REQUIRE(all.size() > 60);
  for (auto const& name : all) {
    INFO(name);
    CHECK((have.count(name) == 1 || elsewhere.count(name) == 1));
  }
  for (auto const& name : elsewhere) {
    INFO(name);
    CHECK(all.count(name) == 1);
  }
}
