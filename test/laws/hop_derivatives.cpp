// SPDX-License-Identifier: BSL-1.0
// Operators with functions: derivatives and batches, as of every operator.
#include "hop_law.hpp"

#include <varve/hop/print.hpp>
#include <varve/varve.hpp>

#include <sstream>

using namespace hop_law;
namespace vv = varve;

namespace {
using both = std::pair<values, values>;
both jvp(program const& f, values const& x, values const& dx) { return vv::jvp(f, std::tuple(x), std::tuple(dx)); }
values vjp(program const& f, values const& x, values const& g) { return std::get<0>(vv::vjp(f, x).second(g)); }
values moved(values const& x, double h, values const& dx) {
  values r;
  for (std::size_t k = 0; k < x.size(); ++k) r.push_back(axpy(x[k], h, dx[k]));
  return r;
}
/// (f(x + h dx) - f(x - h dx)) / 2h
values differences(program const& f, values const& x, values const& dx, double h = 1e-5) {
  values const above = f(moved(x, h, dx)), below = f(moved(x, -h, dx));
  values r;
  for (std::size_t k = 0; k < above.size(); ++k) r.push_back(axpy(above[k] * (0.5 / h), -0.5 / h, below[k]));
  return r;
}
double inner(values const& a, values const& b) {
  double s = 0;
  for (std::size_t k = 0; k < a.size(); ++k) s += sample::inner(a[k], b[k]);
  return s;
}
/// The pullback of a program along a fixed cotangent, as a program.
program pullback(program const& f, values const& g) {
  return [f, g](values const& x) { return vjp(f, x, g); };
}
program pushforward(program const& f, values const& dx) {
  return [f, dx](values const& x) { return jvp(f, x, dx).second; };
}
program mapped(program const& f) {
  return [f](values const& x) { return values(vv::vmap(f)(x)); };
}
/// The lanes of all arguments, one after the other.
values looped(program const& f, values const& lanes) {
  std::vector<values> columns;
  for (index_t k = 0; k < lanes[0].size(0); ++k) {
    values lane;
    for (tensor const& t : lanes) lane.push_back(vv::select(t, 0, k));
    values const y = f(lane);
    columns.resize(y.size());
    for (std::size_t j = 0; j < y.size(); ++j) columns[j].push_back(y[j]);
  }
  values r;
  for (values const& c : columns) r.push_back(vv::stack(c, 0));
  return r;
}
/// Three samples of a row as lanes.
values lanes_of(hop_row const& r) {
  values const a = make(r, 11), b = make(r, 12), c = make(r, 13);
  values lanes;
  for (std::size_t k = 0; k < a.size(); ++k) lanes.push_back(vv::stack(values{a[k], b[k], c[k]}, 0));
  return lanes;
}
/// What a row prints is read by other laws.
struct silent {
  std::ostringstream to;
  vv::print_to here{to};
};
void for_each_smooth(std::function<void(hop_row const&, values const&, values const&)> const& f) {
  silent const out;
  for (hop_row const& r : hop_rows())
    if (!r.is(constant))
      for (std::uint64_t seed : {1, 2, 3}) {
        values const x = make(r, seed);
        f(r, x, like(x, seed + 100));
      }
}
} // namespace

TEST_CASE("all operators with functions: the jvp is the central difference", "[laws][hop]") {
  for_each_smooth([](hop_row const& r, values const& x, values const& dx) {
    law(r, "jvp", [&] {
      auto const [y, dy] = jvp(r.run, x, dx);
      auto const value = difference(y, r.run(x));
      return value.empty() ? difference(dy, differences(r.run, x, dx), 1e-7) : "value: " + value;
    });
  });
}

TEST_CASE("all operators with functions: the vjp is the transpose of the jvp", "[laws][hop]") {
  for_each_smooth([](hop_row const& r, values const& x, values const& dx) {
    values const y = r.run(x), g = like(y, 7);
    law(r, "vjp", [&] {
      auto const run = vv::vjp(r.run, x);
      values const c = std::get<0>(run.second(g));
      auto const value = difference(run.first, y);
      if (!value.empty()) return "value: " + value;
      double const found = inner(c, dx), right = inner(g, differences(r.run, x, dx));
      return close(found, right, 1e-7) ? "" : std::to_string(found) + " instead of " + std::to_string(right);
    });
  });
}

TEST_CASE("all operators with functions: derivatives of derivatives agree with differences", "[laws][hop]") {
  for_each_smooth([](hop_row const& r, values const& x, values const& dx) {
    values const g = like(r.run(x), 7);
    program const pull = pullback(r.run, g);
    law(r, "jvp of vjp", [&] { return difference(jvp(pull, x, dx).second, differences(pull, x, dx), 1e-6); });
    // The Hessian of <g, f> is symmetric.
    law(r, "vjp of vjp", [&] { return difference(vjp(pull, x, dx), differences(pull, x, dx), 1e-6); });
    law(r, "vjp of jvp", [&] { return difference(vjp(pushforward(r.run, dx), x, g), differences(pull, x, dx), 1e-6); });
  });
}

TEST_CASE("all operators with functions: eager backward gives what vjp gives", "[laws][hop][autograd]") {
  for_each_smooth([](hop_row const& r, values const& x, values const&) {
    values const g = like(r.run(x), 7);
    law(r, "backward", [&] {
      values leaves;
      for (tensor const& t : x) leaves.push_back(vv::clone(t).requires_grad_());
      values const y = r.run(leaves);
      std::vector<vv::autograd::target> const outputs(y.begin(), y.end()), inputs(leaves.begin(), leaves.end());
      values const c = vv::autograd::grad<>(outputs, inputs, g, {}, vv::autograd::unused::zeros);
      return difference(c, vjp(r.run, x, g), 1e-12);
    });
  });
}

TEST_CASE("all operators with functions: vmap is a loop, of the derivatives too", "[laws][hop]") {
  silent const out;
  for (hop_row const& r : hop_rows()) {
    values const lanes = lanes_of(r);
    law(r, "vmap", [&] { return difference(mapped(r.run)(lanes), looped(r.run, lanes)); });
    law(r, "vmap of one argument", [&] {
      program const first = [&](values const& x) {
        values all = make(r, 11);
        all[0] = x[0];
        return r.run(all);
      };
      return difference(mapped(first)({lanes[0]}), looped(first, {lanes[0]}));
    });
    if (r.is(constant)) continue;
    values const x = make(r, 11), g = like(r.run(x), 7), dx = like(x, 8);
    program const pull = pullback(r.run, g), push = pushforward(r.run, dx);
    law(r, "vmap of vjp", [&] { return difference(mapped(pull)(lanes), looped(pull, lanes)); });
    law(r, "vmap of jvp", [&] { return difference(mapped(push)(lanes), looped(push, lanes)); });
    values const cotangents = like(looped(r.run, lanes), 9);
    law(r, "vjp of vmap", [&] {
      values const c = vjp(mapped(r.run), lanes, cotangents);
      program const loop = [&](values const& l) { return looped(r.run, l); };
      return difference(c, vjp(loop, lanes, cotangents));
    });
  }
}
