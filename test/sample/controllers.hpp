// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Programs that run on small machines: an arm's torques and their derivatives, a step of model predictive control, and
/// an extended Kalman filter.
#include "value.hpp"

#include <varve/special/angles.hpp>
#include <varve/varve.hpp>

#include <array>
#include <cmath>
#include <optional>
#include <vector>

namespace sample {
namespace vv = varve;

// ---- inverse dynamics
/// A number that may be known while the program is traced, so that zeros and ones of the model leave no operation.
struct symbolic_number {
  double known = 0;
  std::optional<tensor> value{};
  symbolic_number(double x = 0) : known(x) {}
  symbolic_number(tensor const& t) : value(t) {}
  bool is(double x) const { return !value && known == x; }
  friend symbolic_number operator-(symbolic_number const& a) {
    return a.value ? symbolic_number(vv::neg(*a.value)) : symbolic_number(-a.known);
  }
  friend symbolic_number operator+(symbolic_number const& a, symbolic_number const& b) {
    if (a.is(0)) return b;
    if (b.is(0)) return a;
    if (!a.value && !b.value) return a.known + b.known;
    return a.value ? (b.value ? *a.value + *b.value : *a.value + b.known) : *b.value + a.known;
  }
  friend symbolic_number operator-(symbolic_number const& a, symbolic_number const& b) {
    if (b.is(0)) return a;
    if (a.is(0)) return -b;
    if (!a.value && !b.value) return a.known - b.known;
    return a.value ? (b.value ? *a.value - *b.value : *a.value - b.known) : tensor(a.known - *b.value);
  }
  friend symbolic_number operator*(symbolic_number const& a, symbolic_number const& b) {
    if (a.is(0) || b.is(0)) return 0.0;
    if (a.is(1)) return b;
    if (b.is(1)) return a;
    if (a.is(-1)) return -b;
    if (b.is(-1)) return -a;
    if (!a.value && !b.value) return a.known * b.known;
    return a.value ? (b.value ? *a.value * *b.value : *a.value * b.known) : *b.value * a.known;
  }
};
using vector3 = std::array<symbolic_number, 3>;
inline vector3 operator+(vector3 const& a, vector3 const& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
inline vector3 cross(vector3 const& a, vector3 const& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline vector3 scaled(vector3 const& a, vector3 const& by) { return {a[0] * by[0], a[1] * by[1], a[2] * by[2]}; }

/// A link: the twist of its joint's axis in quarter turns, lengths, mass, and inertia about the centre of mass.
struct arm_link {
  int quarter;
  double along, offset, mass;
  std::array<double, 3> centre, inertia;
};
inline std::vector<arm_link> arm_links(int joints) {
  std::vector<arm_link> const all{{1, 0, 0.4, 5.5, {0, 0.1, -0.05}, {0.09, 0.03, 0.08}},
                                  {0, 0.43, 0, 12.3, {-0.22, 0, 0.13}, {0.05, 0.4, 0.38}},
                                  {-1, 0.02, 0.15, 5.1, {-0.02, -0.01, 0.07}, {0.07, 0.08, 0.02}},
                                  {1, 0, 0.43, 1.1, {0, 0.02, 0}, {0.002, 0.001, 0.002}},
                                  {-1, 0, 0, 0.8, {0, 0, 0.01}, {0.0003, 0.0004, 0.0003}},
                                  {0, 0, 0.06, 0.3, {0, 0, 0.03}, {0.0002, 0.0002, 0.0001}}};
  return {all.begin(), all.begin() + joints};
}
/// The torques of an arm's joints for angles, speeds and accelerations: the recursion of Newton and Euler, outwards for
/// motions and inwards for forces, each in the frame of its link.
inline tensor arm_torques(tensor const& angles, tensor const& speeds, tensor const& accelerations) {
  std::size_t const n = static_cast<std::size_t>(angles.sizes()[0]);
  auto const links = arm_links(static_cast<int>(n));
  auto const element = [](tensor const& v, std::size_t k) {
    auto const i = static_cast<index_t>(k);
    return tensor(vv::reshape(vv::slice(v, vv::axis<0>, i, i + 1), dims{}));
  };
  std::vector<symbolic_number> c, s;
  for (std::size_t i = 0; i < n; ++i) {
    tensor const q = element(angles, i);
    c.emplace_back(vv::cos(q)), s.emplace_back(vv::sin(q));
  }
  auto const tilted = [](vector3 const& v, int quarter) { // about x
    return quarter == 0 ? v : quarter > 0 ? vector3{v[0], -v[2], v[1]} : vector3{v[0], v[2], -v[1]};
  };
  auto const into = [&](std::size_t i, vector3 const& v) {
    return tilted({c[i] * v[0] + s[i] * v[1], c[i] * v[1] - s[i] * v[0], v[2]}, -links[i].quarter);
  };
  auto const out_of = [&](std::size_t i, vector3 const& v) {
    vector3 const w = tilted(v, links[i].quarter);
    return vector3{c[i] * w[0] - s[i] * w[1], s[i] * w[0] + c[i] * w[1], w[2]};
  };
  vector3 w{}, dw{}, dv{0.0, 0.0, 9.81};
  std::vector<vector3> way, force, moment;
  for (std::size_t i = 0; i < n; ++i) {
    arm_link const& l = links[i];
    symbolic_number const qd = element(speeds, i), qdd = element(accelerations, i);
    vector3 const spun = dw + cross(w, {0.0, 0.0, qd});
    dw = into(i, {spun[0], spun[1], spun[2] + qdd});
    w = into(i, {w[0], w[1], w[2] + qd});
    vector3 const p = tilted({l.along, 0.0, l.offset}, -l.quarter), r{l.centre[0], l.centre[1], l.centre[2]},
                  inertia{l.inertia[0], l.inertia[1], l.inertia[2]};
    dv = into(i, dv) + cross(dw, p) + cross(w, cross(w, p));
    vector3 const at_centre = dv + cross(dw, r) + cross(w, cross(w, r));
    way.push_back(p);
    force.push_back(scaled({l.mass, l.mass, l.mass}, at_centre));
    moment.push_back(scaled(inertia, dw) + cross(w, scaled(inertia, w)) + cross(p + r, force.back()));
  }
  vector3 f{}, m{};
  std::vector<tensor> torques(n);
  for (std::size_t i = n; i-- > 0;) {
    m = m + moment[i] + cross(way[i], f); // the force of the next link acts at this one's end
    f = f + force[i];
    f = out_of(i, f), m = out_of(i, m);
    torques[i] = m[2].value.value();
  }
  return vv::stack(torques);
}
/// The torques and their derivatives by angles and speeds.
inline values arm_program(values const& x) {
  auto const f = [](tensor const& q, tensor const& qd, tensor const& qdd) { return arm_torques(q, qd, qdd); };
  auto const [by_angles, by_speeds] = vv::jacfwd<0, 1>(f)(x[0], x[1], x[2]);
  return {f(x[0], x[1], x[2]), by_angles, by_speeds};
}

// ---- model predictive control
/// One step for a mass that is pushed along a line: the forces of `n` intervals that bring it to rest, within limits,
/// by 20 accelerated projected-gradient steps on the quadratic program. Returns the first force and all of them.
inline values control_program(values const& x) {
  constexpr int n = 10, steps = 20;
  constexpr double interval = 0.1, weight = 0.05;
  // positions and speeds after each interval are linear in the forces
  std::vector<double> hessian(n * n, 0), by_state(n * 2, 0), momentum;
  for (int i = 0; i < n; ++i)
    for (int k = i; k < n; ++k) { // the state after interval k
      double const p = interval * interval * (k - i + 0.5), v = interval;
      by_state[static_cast<std::size_t>(i * 2)] += p * 10;
      by_state[static_cast<std::size_t>(i * 2 + 1)] += p * 10 * interval * (k + 1) + v;
      for (int j = 0; j <= k; ++j)
        hessian[static_cast<std::size_t>(i * n + j)] += p * 10 * interval * interval * (k - j + 0.5) + v * interval;
    }
  double greatest = 0;
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    hessian[static_cast<std::size_t>(i * n + i)] += weight;
    for (int j = 0; j < n; ++j) sum += std::fabs(hessian[static_cast<std::size_t>(i * n + j)]);
    greatest = std::fmax(greatest, sum);
  }
  double t = 1;
  for (int k = 0; k < steps; ++k) {
    double const next = (1 + std::sqrt(1 + 4 * t * t)) / 2;
    momentum.push_back((t - 1) / next), t = next;
  }
  dtype const type = x[0].dtype();
  tensor const h = from(hessian, {n, n}, type), g = vv::mv(from(by_state, {n, 2}, type), x[0]),
               factors = from(momentum, {steps}, type);
  auto const [forces, last] = vv::scan(
      [&](values const& u, values const& row) {
        tensor const gradient = vv::mv(h, u[1]) + g, now = vv::clamp(u[1] - gradient * (1 / greatest), -2.0, 2.0);
        return std::pair(values{now, now + (now - u[0]) * row[0]}, values{vv::sum(gradient * gradient)});
      },
      values{x[1], x[1]}, values{factors});
  return {vv::reshape(vv::slice(forces[0], vv::axis<0>, 0, 1), dims{}), forces[0], last[0]};
}

// ---- an extended Kalman filter
/// A vehicle's position, heading and speed, from distance and bearing to a beacon at the origin. Each row of `x[2]` is
/// {turn rate, acceleration, distance, bearing}; a distance that is not positive says that nothing was measured.
inline values filter_program(values const& x) {
  static constexpr double interval = 0.1;
  auto const element = [](tensor const& v, index_t k) {
    return tensor(vv::reshape(vv::slice(v, vv::axis<0>, k, k + 1), dims{}));
  };
  dtype const type = x[0].dtype();
  tensor const noise = from({1e-4, 0, 0, 0, 0, 1e-4, 0, 0, 0, 0, 1e-5, 0, 0, 0, 0, 1e-3}, {4, 4}, type),
               unit = from({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, {4, 4}, type),
               measured = from({0.04, 0, 0, 0.0025}, {2, 2}, type);
  auto const moves = [element](tensor const& s, tensor const& u) {
    tensor const heading = element(s, 2), speed = element(s, 3);
    return tensor(vv::stack(std::vector<tensor>{element(s, 0) + speed * vv::cos(heading) * interval,
                                                element(s, 1) + speed * vv::sin(heading) * interval,
                                                heading + element(u, 0) * interval, speed + element(u, 1) * interval}));
  };
  auto const sees = [element](tensor const& s) {
    tensor const px = element(s, 0), py = element(s, 1);
    return tensor(vv::stack(std::vector<tensor>{vv::sqrt(px * px + py * py), vv::atan2(py, px) - element(s, 2)}));
  };
  auto const [state, track] = vv::scan(
      [&](values const& now, values const& row) {
        tensor const u = row[0], f = vv::jacfwd(moves)(now[0], u), ahead = moves(now[0], u),
                     spread = vv::mm(vv::mm(f, now[1]), vv::transpose(f, vv::axis<0>, vv::axis<1>)) + noise;
        auto const next = vv::cond(
            element(u, 2) > 0.0,
            [&](tensor const& s, tensor const& p, tensor const& z) {
              tensor const h = vv::jacfwd(sees)(s), ht = vv::transpose(h, vv::axis<0>, vv::axis<1>),
                           pht = vv::mm(p, ht), c = vv::reshape(vv::mm(h, pht) + measured, dims{4}), a = element(c, 0),
                           b = element(c, 1), d = element(c, 3);
              tensor const inverse =
                  vv::reshape(vv::stack(std::vector<tensor>{d, vv::neg(b), vv::neg(b), a}), dims{2, 2}) /
                  (a * d - b * b);
              tensor const gain = vv::mm(pht, inverse), off = vv::slice(z, vv::axis<0>, 2, 4) - sees(s);
              return std::tuple(s + vv::mv(gain, off), tensor(vv::mm(unit - vv::mm(gain, h), p)));
            },
            [](tensor const& s, tensor const& p, tensor const&) { return std::tuple(s * 1.0, p * 1.0); }, ahead, spread,
            u);
        return std::pair(values{std::get<0>(next), std::get<1>(next)}, values{std::get<0>(next)});
      },
      values{x[0], x[1]}, values{x[2]});
  return {state[0], state[1], track[0]};
}
} // namespace sample
