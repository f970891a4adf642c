// SPDX-License-Identifier: BSL-1.0
#include "law.hpp"

#include <varve/sparse.hpp>

#include <functional>
#include <set>
#include <varve_test.hpp>

// The pattern of every operator covers what is not 0 in its dense Jacobian, at several points. Operators for which it
// has more entries are listed below.

using namespace law;

namespace {
using function = std::function<tensor(tensor const&)>;
/// What is not 0 in the dense Jacobian.
std::set<std::pair<int, int>> nonzeros(function const& f, tensor const& x) {
  std::set<std::pair<int, int>> r;
  tensor const y = f(x);
  int const n = static_cast<int>(x.numel());
  for (int c = 0; c < n; ++c) {
    std::vector<double> unit(static_cast<std::size_t>(n));
    unit[static_cast<std::size_t>(c)] = 1;
    tensor const flat = vv::to(tensor::from_data(unit.data(), {n}), x.dtype());
    tensor const dy = vv::jvp(f, std::tuple(x), std::tuple(vv::reshape(flat, x.sizes()))).second;
    auto const v = vv::reshape(vv::to(dy, vv::dtype::float64), {dy.numel()}).to_vector<double>();
    for (std::size_t k = 0; k < v.size(); ++k)
      if (v[k] != 0) r.insert({static_cast<int>(k), c});
  }
  return r;
}
} // namespace

TEST_CASE("all operators: the pattern covers the Jacobian", "[laws][sparse]") {
  std::set<std::string> loose;
  int samples = 0;
  sample::for_each_sample([&](sample::row const& r, std::vector<vv::dims> const& shapes, std::uint64_t seed) {
    sample::values const x = sample::make(r, shapes, seed);
    for (std::size_t const k : r.real()) {
      INFO(sample::describe(r, shapes) << ", operand " << k);
      auto const at = [&](sample::values const& point) {
        return function([&r, point, k](tensor const& v) {
          sample::values y = point;
          y[k] = v;
          return r(y);
        });
      };
      vv::sparsity_pattern const p = vv::sparsity(at(x))(x[k]);
      std::set<std::pair<int, int>> found;
      for (std::uint64_t s : {seed, seed + 1000, seed + 2000, seed + 3000}) {
        sample::values point = sample::make(r, shapes, s);
        for (std::size_t q = 0; q < point.size(); ++q)
          if (r.operands[q] == sample::domain::index || r.operands[q] == sample::domain::flag) point[q] = x[q];
        found.merge(nonzeros(at(point), point[k]));
      }
      for (auto const& [row, column] : found) CHECK(p.contains(row, column));
      if (static_cast<std::size_t>(p.count()) != found.size()) loose.insert(r.name);
      ++samples;
    }
  });
  // Derivatives of these are 0 at some values and not at others, or everywhere although they are computed; conv2d may
  // multiply weights by zeros with which it padded; factors of matrices are triangular.
  for (char const* name : {"amax",
                           "amin",
                           "cholesky",
                           "cholesky_ex",
                           "cholesky_inverse",
                           "clamp",
                           "conv2d",
                           "copysign",
                           "cummax",
                           "cummin",
                           "fmod",
                           "kthvalue",
                           "log_softmax",
                           "lu_factor",
                           "maximum",
                           "median",
                           "minimum",
                           "mode",
                           "nanmedian",
                           "q",
                           "r",
                           "recurrence",
                           "remainder",
                           "scatter_by",
                           "scatter_reduce",
                           "sign",
                           "softmax",
                           "solve",
                           "sort",
                           "svd",
                           "topk",
                           "eigenvectors",
                           "solve_triangular",
                           "cholesky_solve"})
    loose.erase(name);
  std::string names;
  for (auto const& n : loose) names += n + " ";
  CHECK(samples > 100);
  CHECK(names == "");
}
