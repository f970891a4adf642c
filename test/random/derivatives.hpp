// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Laws of sparse derivatives and of implicit functions, checked on what a program computes of its first argument:
/// patterns cover dense derivatives, sparse derivatives equal dense ones, and derivatives of a solution equal those of
/// the iteration that ends there.
#include "check.hpp"

#include <varve/implicit.hpp>
#include <varve/sparse.hpp>

namespace random_programs {

/// What was checked, and what was not and why.
struct law_tally {
  tally all; // `refusals` also counts why a law was left out
  long jacobians = 0, hessians = 0, solutions = 0, second = 0;
  long entries = 0, zeros = 0; // of Jacobians: inside and outside of their patterns
};

namespace laws {
/// A function of one tensor. Every law takes this type, so that transforms are compiled once.
using line = std::function<tensor(tensor const&)>;
/// Thrown where a law does not apply.
struct left_out {
  std::string why;
};

/// Returns a derivative as a matrix of float64 with a column for each element of x.
inline tensor as_matrix(tensor const& t, tensor const& x) {
  index_t const columns = x.numel();
  return vv::reshape(vv::to(t, dtype::float64), {columns ? t.numel() / columns : index_t(0), columns});
}
inline double greatest(tensor const& t) {
  double r = 0;
  for (double const v : sample::elements(t)) r = std::isfinite(v) ? std::max(r, std::fabs(v)) : HUGE_VAL;
  return r;
}
inline double distance(tensor const& a, tensor const& b) {
  if (!(a.sizes() == b.sizes())) return HUGE_VAL;
  return greatest(vv::to(a, dtype::float64) - vv::to(b, dtype::float64));
}
/// A matrix, and by how much another way to compute it differs: rounding, or a kink.
struct dense_matrix {
  tensor of;
  double noise;
  dense_matrix(tensor const& a, tensor const& b) : of(a), noise(distance(a, b)) {
    if (!std::isfinite(greatest(a) + greatest(b))) throw left_out{"a derivative is not finite"};
    if (noise > 1e-3 * (1 + greatest(a))) throw left_out{"two ways to a dense derivative differ"};
  }
};
/// Returns what a law says of a matrix that was computed sparsely; "" if it is right.
inline std::string against(dense_matrix const& right, tensor const& found, double base, char const* what) {
  double const off = distance(found, right.of), allowed = base * (1 + greatest(right.of)) + 10 * right.noise;
  if (off <= allowed) return "";
  return std::string(what) + " differs from the dense derivative by " + std::to_string(off);
}
/// Returns the entry that a pattern lacks; "" if it covers what is not 0.
inline std::string uncovered(vv::sparsity_pattern const& p, tensor const& dense) {
  std::vector<double> const v = sample::elements(dense);
  if (p.rows * p.columns != static_cast<int>(v.size())) return "the pattern has another size than the Jacobian";
  for (int k = 0; k < static_cast<int>(v.size()); ++k)
    if (v[static_cast<std::size_t>(k)] != 0 && !p.contains(k / p.columns, k % p.columns))
      return "the pattern lacks the entry (" + std::to_string(k / p.columns) + ", " + std::to_string(k % p.columns) +
             "), which is " + std::to_string(v[static_cast<std::size_t>(k)]);
  return "";
}

/// The places where a pattern must hold: the argument, and another one.
inline values points(tensor const& x) {
  return {x, changed(x, [](index_t k, double e) { return 0.3 * std::cos(static_cast<double>(k)) - 0.625 * e; })};
}
inline std::string of_jacobian(line const& f, tensor const& x0, double base, law_tally& t) {
  vv::sparsity_pattern const pattern = vv::sparsity(f)(x0);
  auto const sparse = vv::sparse_jacobian(f);
  auto const columns = vv::sparse_jacobian(f, vv::by_columns);
  auto const rows = vv::sparse_jacobian(f, vv::by_rows);
  for (tensor const& x : points(x0)) {
    dense_matrix const d(as_matrix(vv::jacfwd(f)(x), x), as_matrix(vv::jacrev(f)(x), x));
    if (std::string const what = uncovered(pattern, d.of); !what.empty()) return what;
    if (std::string const what = uncovered(rows.pattern(x), d.of); !what.empty()) return "by rows: " + what;
    for (std::string const& what : {against(d, sparse(x).to_dense(), base, "sparse_jacobian"),
                                    against(d, columns(x).to_dense(), base, "sparse_jacobian by columns"),
                                    against(d, rows(x).to_dense(), base, "sparse_jacobian by rows")})
      if (!what.empty()) return what;
    ++t.all.comparisons;
  }
  ++t.jacobians, t.entries += pattern.count(), t.zeros += pattern.rows * pattern.columns - pattern.count();
  return "";
}
/// The same with the other arguments of the program passed on, so that x is argument 1.
inline std::string of_argument(function const& f, given const& g, double base, law_tally& t) {
  values const others = ways::rest(g.arguments);
  if (others.empty()) return "";
  auto const first = [f](values const& o, tensor const& x) { return tensor(f(ways::behind(x, o)).at(0)); };
  tensor const x = g.arguments[0];
  tensor const j = as_matrix(vv::jacfwd<1>(first)(others, x), x);
  if (std::string const what = uncovered(vv::sparsity<1>(first)(others, x), j); !what.empty()) return what;
  ++t.all.comparisons;
  return against(dense_matrix(j, j), vv::sparse_jacobian<-1>(first)(others, x).to_dense(), base,
                 "sparse_jacobian by argument 1");
}
inline std::string of_hessian(line const& f, tensor const& x0, double base, law_tally& t) {
  vv::sparsity_pattern const pattern = vv::hessian_sparsity(f)(x0);
  auto const star = vv::sparse_hessian(f);
  auto const acyclic = vv::sparse_hessian(f, vv::by_substitution);
  for (tensor const& x : points(x0)) {
    tensor const h = as_matrix(vv::hessian(f)(x), x);
    dense_matrix const d(h, vv::transpose(h)); // custom derivatives and kinks need not be symmetric
    if (std::string const what = uncovered(pattern, d.of); !what.empty()) return "hessian: " + what;
    for (std::string const& what : {against(d, star(x).to_dense(), base, "sparse_hessian"),
                                    against(d, acyclic(x).to_dense(), 10 * base, "sparse_hessian by substitution")})
      if (!what.empty()) return what;
    ++t.all.comparisons;
  }
  ++t.hessians;
  return "";
}

// --- implicit functions
/// g(x, d) = tanh(scale W f(x) + d) / 4, of the shape of x: a contraction if the scale is small enough. W mixes the
/// elements of what the program computes.
struct contraction {
  function f;
  double scale;
  tensor operator()(tensor const& x, tensor const& d, values const& others) const {
    tensor const y = f(ways::behind(x, others)).at(0);
    index_t const n = y.numel(), m = x.numel();
    tensor const i = vv::arange(m, dtype::float64), j = vv::arange(n, dtype::float64);
    tensor const weights = vv::cos(vv::unsqueeze(i, 1) * 1.3 + j * 0.7 + 0.2);
    tensor const mixed = vv::matmul(weights, vv::reshape(vv::to(y, dtype::float64), {n, 1}));
    return vv::tanh(vv::reshape(mixed, x.sizes()) * scale + d) * 0.25;
  }
};
/// The greatest sum of the absolute values of a row of dg/dx.
inline double rate(contraction const& g, tensor const& x, tensor const& d, values const& others) {
  tensor const j = as_matrix(vv::jacfwd(line([&](tensor const& v) { return g(v, d, others); }))(x), x);
  return greatest(vv::sum(vv::abs(j), 1));
}
inline tensor weighted(tensor const& x, double phase) {
  return vv::sum(x * vv::reshape(vv::cos(vv::arange(x.numel(), dtype::float64) * 0.9 + phase), x.sizes()));
}
/// Returns the solution as a function of d, by one of three solvers.
inline line solver_of(contraction const& g, tensor const& start, values const& others, int which) {
  namespace implicit = varve::implicit;
  if (which == 0) return [=](tensor const& d) { return implicit::fixed_point(g)(start, d, others); };
  if (which == 1)
    return [=](tensor const& d) { return implicit::fixed_point(g, implicit::anderson<3>{})(start, d, others); };
  return [=](tensor const& d) {
    return implicit::root([g](tensor const& x, tensor const& v, values const& o) { return x - g(x, v, o); },
                          implicit::newton{}, implicit::gmres<8>{.tolerance = 1e-13})(start, d, others);
  };
}
inline line gradient(line const& f) {
  return [f](tensor const& d) { return vv::grad([f](tensor const& v) { return weighted(f(v), 0.4); })(d); };
}
inline tensor along(line const& f, tensor const& d) {
  tensor const v = vv::reshape(vv::cos(vv::arange(d.numel(), dtype::float64) * 1.1), d.sizes());
  return vv::jvp(f, std::tuple(d), std::tuple(v)).second;
}
/// What is compared besides first derivatives: compiled ones or those of lanes, and second derivatives.
struct solution_laws {
  bool compiled, second;
};
/// Compares derivatives of a solution with those of some steps that start there.
inline std::string of_solution(line const& solution, line const& steps, tensor const& d, double base,
                               solution_laws const& also, law_tally& t) {
  auto const differ = [&](tensor const& found, tensor const& right, char const* what) {
    ++t.all.comparisons;
    double const off = distance(found, right);
    if (off <= base * (1 + greatest(right))) return std::string();
    return std::string(what) + " is off by " + std::to_string(off);
  };
  line const g = gradient(solution);
  tensor const slopes = g(d), slope = along(solution, d);
  std::vector<std::string> found{
      differ(slope, along(steps, d), "the jvp of a solution"),
      differ(slopes, gradient(steps)(d), "the gradient of a solution"),
      differ(along([&](tensor const& v) { return weighted(solution(v), 0.4); }, d), weighted(slope, 0.4),
             "the jvp of a sum of a solution"),
  };
  if (also.compiled) {
    found.push_back(differ(vv::compile(g)(d), slopes, "the compiled gradient of a solution"));
    found.push_back(differ(vv::compile(solution)(d), solution(d), "the compiled solution"));
  } else {
    tensor const lanes = vv::stack(values{d, d * -0.5}, 0), lane = vv::select(lanes, 0, 1);
    found.push_back(differ(vv::select(vv::vmap(solution)(lanes), 0, 1), solution(lane), "a lane of solutions"));
    found.push_back(differ(vv::select(vv::vmap(g)(lanes), 0, 1), g(lane), "a lane of gradients of solutions"));
  }
  if (also.second) {
    found.push_back(differ(along(g, d), along(gradient(steps), d), "the second derivative of a solution"));
    ++t.second;
  }
  for (std::string const& what : found)
    if (!what.empty()) return what;
  ++t.solutions;
  return "";
}
inline std::string of_implicit(function const& f, given const& g, double base, int which, solution_laws const& also,
                               law_tally& t) {
  values const others = ways::rest(g.arguments);
  tensor const x = g.arguments[0], start = vv::zeros_like(x) + 0.1;
  tensor const d = vv::reshape(vv::sin(vv::arange(x.numel(), dtype::float64) * 2.1 + 0.5), x.sizes());
  contraction step{f, 1};
  double const steepest = std::max(rate(step, start, d, others), rate(step, start * -1.5, d, others));
  if (!std::isfinite(steepest)) throw left_out{"a derivative is not finite"};
  step.scale = 1 / (1 + 4 * steepest);
  line const solution = solver_of(step, start, others, which);
  for (tensor const& at : {d, tensor(d * -0.5)}) {
    tensor const end = solution(at);
    if (rate(step, end, at, others) > 0.2) throw left_out{"no contraction"};
    if (distance(step(end, at, others), end) > 1e-6) throw left_out{"a jump instead of a solution"};
  }
  tensor const end = solution(d);
  line const steps = [=](tensor const& v) {
    tensor y = end;
    for (int k = 0; k < 16; ++k) y = step(y, v, others);
    return y;
  };
  return of_solution(solution, steps, d, base, also, t);
}
} // namespace laws

/// Why no law is checked for a program; "" if they are.
inline std::string has_no_laws(program const& p) {
  if (p.draws) return "random numbers";
  if (p.special) return "special numbers";
  if (p.turns_off) return "grad mode, which forward mode does not obey";
  if (p.hides || p.lies) return "writes that depend on memory";
  return "";
}
/// Returns what is wrong with the derivatives of a program; "" if nothing is.
inline std::string check_derivatives(program const& p, law_tally& t) {
  ++t.all.programs;
  auto const skip = [&](std::string const& why) { ++t.all.refused, ++t.all.refusals[without_numbers(why)]; };
  if (std::string const why = has_no_laws(p); !why.empty()) return skip(why), "";
  given const g = inputs_of(p);
  function const f = as_function(p, g);
  held const written(g.arguments);
  try {
    f(g.arguments);
  } catch (varve::error const& e) { return skip(e.what()), ""; }
  if (held(g.arguments).versions != written.versions) return skip("writes into an argument"), "";
  laws::line const first = ways::first_result(f, g.arguments), scalar = ways::scalar(f, g.arguments);
  double base = has_halves(p) ? 3e-2 : is_coarse(p) || meets(is_single, p, "") ? 1e-3 : 1e-8;
  if (base < 1e-5 && meets(is_even, p, "")) base = 1e-5;
  auto const attempt = [&](char const* name, auto const& law) -> std::string {
    held const before(g.arguments);
    try {
      if (std::string const what = law(); !what.empty()) return what;
    } catch (laws::left_out const& e) { skip(std::string(name) + ": " + e.why); } catch (varve::error const& e) {
      skip(std::string(name) + ": " + e.what());
    } catch (std::exception const& e) { return std::string("an exception that is not varve's: ") + e.what(); }
    if (!thread_is_clean()) return clean_thread(), std::string(name) + ": the thread's stacks are not as before";
    if (held(g.arguments).elements != before.elements) return std::string(name) + ": an argument has changed";
    return "";
  };
  tensor const x = g.arguments[0];
  if (auto what = attempt("jacobian", [&] { return laws::of_jacobian(first, x, base, t); }); !what.empty()) return what;
  if (auto what = attempt("argument 1", [&] { return laws::of_argument(f, g, base, t); }); !what.empty()) return what;
  if (auto what = attempt("hessian", [&] { return laws::of_hessian(scalar, x, base, t); }); !what.empty()) return what;
  std::string const what =
      attempt("solution", [&] { return laws::of_implicit(f, g, base, p.count % 3, {p.count % 2 == 0, p.smooth}, t); });
  // 0 times an infinite derivative, which nobody reads, is NaN where it is computed
  if (what.find("off by inf") != std::string::npos && meets(is_infinite, p, ""))
    return skip("solution: a derivative inside is not finite"), "";
  return what;
}
} // namespace random_programs
