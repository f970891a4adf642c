// SPDX-License-Identifier: BSL-1.0
/// @file
/// Sparse Jacobians and Hessians of varve on tensors beside those of CppAD, for five patterns, in one run. CppAD
/// records and optimizes a function once and keeps its coloring, as varve keeps its plan; both are timed per call.
/// Entries must agree. Needs CppAD's headers: libcppad-dev or cppad, or a copy as in r-cran-tmb.
#include "../measure.hpp"

#include <varve/sparse.hpp>
#include <varve/varve.hpp>

#include <algorithm>
#include <cppad/cppad.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace vv = varve;
using vv::tensor;

namespace {
/// Numbers that depend on each other: result i gets sin(x[i] * x[j]) of each pair (i, j), and x[i]^2.
struct problem {
  char const* name;
  long n;
  std::vector<std::int64_t> i{}, j{};
  void add(long a, long b) {
    if (a != b && a >= 0 && b >= 0 && a < n && b < n) i.push_back(a), j.push_back(b);
  }
  void both(long a, long b) { add(a, b), add(b, a); }
};
problem tridiagonal() {
  problem p{"tridiagonal", 10000};
  for (long k = 0; k + 1 < p.n; ++k) p.both(k, k + 1);
  return p;
}
problem arrow() {
  problem p{"arrow", 1000};
  for (long k = 1; k < p.n; ++k) p.both(0, k);
  return p;
}
problem laplacian() {
  problem p{"laplacian", 10000};
  for (long k = 0; k < p.n; ++k) {
    if (k % 100 != 99) p.both(k, k + 1);
    p.both(k, k + 100);
  }
  return p;
}
/// Poses of three numbers: each depends on the next one, and every tenth on one that it saw before.
problem pose_graph() {
  problem p{"pose_graph", 3000};
  auto const poses = [&](long a, long b) {
    for (long r = 0; r < 3; ++r)
      for (long c = 0; c < 3; ++c) p.both(3 * a + r, 3 * b + c);
  };
  for (long k = 0; k + 1 < p.n / 3; ++k) poses(k, k + 1);
  for (long k = 40; k < p.n / 3; k += 10) poses(k, k * 37 % (k - 20));
  return p;
}
/// One hundredth of the entries, at random.
problem random_pairs() {
  problem p{"random", 1000};
  std::set<std::pair<long, long>> pairs;
  unsigned long s = 1;
  auto const next = [&] { return static_cast<long>((s = s * 6364136223846793005UL + 1442695040888963407UL) >> 40); };
  while (static_cast<long>(pairs.size()) < p.n * p.n / 200) {
    long const a = next() % p.n, b = next() % p.n;
    if (a != b) pairs.emplace(std::min(a, b), std::max(a, b));
  }
  for (auto const& [a, b] : pairs) p.both(a, b);
  return p;
}

std::vector<double> point(problem const& p) {
  std::vector<double> x(static_cast<std::size_t>(p.n));
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = 0.5 + 1e-3 * static_cast<double>(k % 97);
  return x;
}

// --- the functions
constexpr auto values = [](auto const& x, auto const& i, auto const& j) {
  auto const pairs = vv::sin(vv::gather(x, 0, i) * vv::gather(x, 0, j));
  return vv::scatter_add(x * x, 0, i, pairs);
};
constexpr auto energy = [](auto const& x, auto const& i, auto const& j) { return vv::sum(values(x, i, j)); };
using number = CppAD::AD<double>;
std::vector<number> values_of(problem const& p, std::vector<number> const& x) {
  std::vector<number> y;
  for (auto const& v : x) y.push_back(v * v);
  for (std::size_t k = 0; k < p.i.size(); ++k) {
    auto const a = static_cast<std::size_t>(p.i[k]), b = static_cast<std::size_t>(p.j[k]);
    y[a] += sin(x[a] * x[b]);
  }
  return y;
}
CppAD::ADFun<double> recorded(problem const& p, bool hessian) {
  std::vector<double> const at = point(p);
  std::vector<number> x(at.begin(), at.end());
  CppAD::Independent(x);
  std::vector<number> y = values_of(p, x);
  if (hessian) {
    number sum = 0;
    for (auto const& v : y) sum += v;
    y.assign(1, sum);
  }
  CppAD::ADFun<double> f(x, y);
  f.optimize();
  return f;
}

// --- the two packages
/// The entries of the matrix by CppAD, at the places that varve's pattern has.
struct by_cppad {
  CppAD::ADFun<double> f;
  std::vector<double> x, weight{1};
  std::vector<std::set<std::size_t>> pattern;
  std::vector<std::size_t> row{}, column{};
  std::vector<double> entries{};
  CppAD::sparse_jacobian_work jacobian{};
  CppAD::sparse_hessian_work hessian{};
  bool of_hessian;
  std::size_t passes = 0;

  by_cppad(problem const& p, bool second, vv::sparsity_pattern const& places)
      : f(recorded(p, second)), x(point(p)), pattern(x.size()), of_hessian(second) {
    vv::pattern_view const v = places.view();
    for (int r = 0; r < v.rows; ++r)
      for (int const* c = v.begin(r); c != v.end(r); ++c) {
        pattern[static_cast<std::size_t>(r)].insert(static_cast<std::size_t>(*c));
        row.push_back(static_cast<std::size_t>(r)), column.push_back(static_cast<std::size_t>(*c));
      }
    entries.resize(row.size());
  }
  void run() {
    passes = of_hessian ? f.SparseHessian(x, weight, pattern, row, column, entries, hessian)
                        : f.SparseJacobianForward(x, pattern, row, column, entries, jacobian);
  }
};

template <bool Hessian, class... P>
auto derivative(P const&... pattern) {
  if constexpr (Hessian) return vv::sparse_hessian(energy, pattern...);
  else return vv::sparse_jacobian(values, pattern...);
}
template <bool Hessian>
void by_varve(benchmark::State& state, problem const& p, bool compiled) {
  auto const d = derivative<Hessian>();
  std::vector<double> const at = point(p);
  tensor const x(at), i(p.i), j(p.j);
  auto const pattern = d.pattern(x, i, j);
  auto const of_pattern = derivative<Hessian>(pattern); // compiled programs do not know the elements of i and j
  auto const program = vv::compile([&](auto const&... a) { return of_pattern.values(a...); });
  tensor const y = compiled ? program(x, i, j) : d.values(x, i, j);
  by_cppad expected(p, Hessian, pattern);
  expected.run();
  for (std::size_t k = 0; k < expected.entries.size(); ++k)
    if (!(std::abs(y.data<double>()[k] - expected.entries[k]) <= 1e-12)) return state.SkipWithError("they differ");
  for (auto _ : state) benchmark::DoNotOptimize(compiled ? program(x, i, j) : d.values(x, i, j));
  state.counters["passes"] = d.passes(x, i, j);
  state.counters["entries"] = pattern.count();
  state.counters["percent"] = 100.0 * pattern.count() / (static_cast<double>(p.n) * static_cast<double>(p.n));
}
template <bool Hessian>
void time_cppad(benchmark::State& state, problem const& p) {
  std::vector<double> const at = point(p);
  by_cppad d(p, Hessian, derivative<Hessian>().pattern(tensor(at), tensor(p.i), tensor(p.j)));
  d.run();
  for (auto _ : state) {
    d.run();
    benchmark::ClobberMemory();
  }
  state.counters["passes"] = static_cast<double>(d.passes);
}
} // namespace

int main(int argc, char** argv) {
  auto const add = [](std::string const& name, auto const& run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMicrosecond);
  };
  for (auto const& p : {tridiagonal(), arrow(), laplacian(), pose_graph(), random_pairs()}) {
    std::string const name = p.name;
    add(name + "/jacobian/varve", [p](benchmark::State& s) { by_varve<false>(s, p, false); });
    add(name + "/jacobian/varve_compiled", [p](benchmark::State& s) { by_varve<false>(s, p, true); });
    add(name + "/jacobian/cppad", [p](benchmark::State& s) { time_cppad<false>(s, p); });
    add(name + "/hessian/varve", [p](benchmark::State& s) { by_varve<true>(s, p, false); });
    add(name + "/hessian/varve_compiled", [p](benchmark::State& s) { by_varve<true>(s, p, true); });
    add(name + "/hessian/cppad", [p](benchmark::State& s) { time_cppad<true>(s, p); });
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
