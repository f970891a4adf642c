// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// The rows of what carries functions: higher-order operators, grad-mode regions, transforms within programs.
#include "complex_operators.hpp"
#include "optional_operators.hpp"
#include "sizes_of_data.hpp"

#include <varve/hop/wrap.hpp>

namespace random_programs {
/// Complex numbers as pairs of real ones; others as they are.
inline tensor as_real(tensor const& t) { return varve::is_complex(t.dtype()) ? tensor(vv::view_as_real(t)) : t; }
/// Σ of all floating elements, and of both parts of complex ones, each with a weight of its own: what gradients are
/// taken of.
inline tensor contracted(values const& y) {
  tensor sum = vv::zeros({}, dtype::float64);
  double phase = 0.3;
  for (tensor const& element : y) {
    phase += 0.7;
    tensor const t = as_real(element);
    if (!varve::is_floating(t.dtype())) continue;
    tensor const n = vv::to(vv::arange(t.numel()), dtype::float64);
    tensor const weights = vv::reshape(vv::cos(n * 1.3 + phase), t.sizes());
    sum = sum + vv::sum(t * weights);
  }
  return sum;
}
namespace carried {
inline values from(values const& x, std::size_t first, std::size_t count) {
  return {x.begin() + static_cast<std::ptrdiff_t>(first), x.begin() + static_cast<std::ptrdiff_t>(first + count)};
}
inline values joined(values a, values const& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
/// Calls `f` with values as so many arguments: for operators that take no trees.
template <class F>
auto spread(values const& x, F const& f) {
  switch (x.size()) {
  case 1:
    return f(x[0]);
  case 2:
    return f(x[0], x[1]);
  case 3:
    return f(x[0], x[1], x[2]);
  case 4:
    return f(x[0], x[1], x[2], x[3]);
  default:
    throw vv::value_error("varve: random programs: a carrier takes one to four values");
  }
}
/// A function of values as one of so many arguments.
inline auto taken(function const& f) {
  return [f](auto const&... x) { return f(values{x...}); };
}
/// Who listens hears the body of a loop for every row: a trace of it would be of one row for all.
template <class F>
void heard(values const& rows, bool reversed, F const& body) {
  index_t const n = listener && !rows.empty() ? index_t(rows[0].sizes()[0]) : 0;
  for (index_t k = 0; k < n; ++k) {
    values row;
    for (tensor const& t : rows) row.push_back(vv::select(t, 0, reversed ? n - 1 - k : k));
    body(row);
  }
}
} // namespace carried

/// Attribute 0 of a carrier says how its operands are divided: {first, ...}.
inline std::vector<row> const& carrier_rows() {
  using enum kind;
  using v = values const&;
  using st = statement const&;
  static auto const n = [](st s, int k) { return static_cast<std::size_t>(s.at[0][k]); };
  static std::vector<row> const rows{
      {"cond", carrier, "", false, "vv::cond({0}, {f0}, {f1}, {1...})", nullptr,
       [](v x, st, bodies_t f) {
         return carried::spread(carried::from(x, 1, x.size() - 1), [&](auto const&... o) {
           return vv::cond(x[0], carried::taken(f[0]), carried::taken(f[1]), o...);
         });
       }},
      {"map", carrier, "", true, "vv::map({f0}, values{{0..p}}, values{{p...}})", nullptr,
       [](v x, st s, bodies_t f) {
         auto const& body = f[0];
         values const rows = carried::from(x, 0, n(s, 0)), rest = carried::from(x, n(s, 0), x.size() - n(s, 0));
         carried::heard(rows, false, [&](values const& row) { body(carried::joined(row, rest)); });
         return vv::map([body](values const& row, values const& same) { return body(carried::joined(row, same)); },
                        rows, rest);
       }},
      {"scan", carrier, "", true, "vv::scan({f0}, values{{0..p}}, values{{p...}}, {r})", nullptr,
       [](v x, st s, bodies_t f) {
         auto const& body = f[0];
         std::size_t const carry = n(s, 0);
         auto const step = [body, carry](values const& c, values const& row) {
           values const y = body(carried::joined(c, row));
           return std::pair(carried::from(y, 0, carry), carried::from(y, carry, y.size() - carry));
         };
         values const start = carried::from(x, 0, carry), rows = carried::from(x, carry, x.size() - carry);
         bool const reversed = s.at[0][1] != 0;
         values now = start;
         carried::heard(rows, reversed, [&](values const& row) { now = step(now, row).first; });
         auto const r = vv::scan(step, start, rows, reversed);
         return carried::joined(r.first, r.second);
       }},
      {"while_loop", carrier, "", false, "vv::while_loop({f0}, {f1}, values{{0...}})", nullptr,
       [](v x, st, bodies_t f) {
         auto const &more = f[0], &step = f[1];
         return vv::while_loop([more](values const& c) { return more(c)[0]; },
                               [step](values const& c) { return step(c); }, x);
       }},
      {"associative_scan", carrier, "", true, "vv::associative_scan({f0}, {0})", nullptr,
       [](v x, st, bodies_t f) {
         auto const& combine = f[0];
         return values{vv::associative_scan(
             [combine](tensor const& a, tensor const& b) { return combine(values{a, b})[0]; }, x[0])};
       }},
      {"checkpoint", carrier, "", true, "vv::checkpoint({f0}, {0...})", nullptr,
       [](v x, st, bodies_t f) {
         return carried::spread(x, [&](auto const&... o) { return vv::checkpoint(carried::taken(f[0]), o...); });
       }},
      {"wrap", carrier, "", true, "vv::wrap({f0}, {0...})", nullptr,
       [](v x, st, bodies_t f) {
         return carried::spread(x, [&](auto const&... o) { return vv::wrap(carried::taken(f[0]), o...); });
       }},
      {"no_grad", carrier, "", false, "[&] { vv::no_grad const off; return {f0}(values{{0...}}); }()", nullptr,
       [](v x, st, bodies_t f) {
         vv::no_grad const off;
         return f[0](x);
       }},
      {"vmap", carrier, "", true, "vv::vmap({f0})(values{{0...}})", nullptr,
       [](v x, st, bodies_t f) { return vv::vmap(f[0])(x); }},
      {"grad", carrier, "", true, "values{vv::grad(contracted({f0}))(values{{0...}})}", nullptr,
       [](v x, st, bodies_t f) {
         auto const& body = f[0];
         values const rest = carried::from(x, 1, x.size() - 1);
         return values{vv::grad([body](tensor const& a, values const& others) {
           return contracted(body(carried::joined({a}, others)));
         })(x[0], rest)};
       }},
      {"jvp", carrier, "", true, "vv::jvp({f0}, std::tuple({0}), std::tuple({0} * 0.5)).second", nullptr,
       [](v x, st, bodies_t f) {
         auto const& body = f[0];
         values const rest = carried::from(x, 1, x.size() - 1);
         return values{vv::jvp([body, rest](tensor const& a) { return contracted(body(carried::joined({a}, rest))); },
                               std::tuple(x[0]), std::tuple(x[0] * 0.5))
                           .second};
       }},
      {"functionalize", carrier, "", true, "vv::functionalize({f0})(values{{0...}})", nullptr,
       [](v x, st, bodies_t f) { return vv::functionalize(f[0])(x); }},
      {"compile", carrier, "", true, "vv::compile({f0})(values{{0...}})", nullptr,
       [](v x, st, bodies_t f) { return vv::compile(f[0])(x); }},
  };
  return rows;
}
inline row const* find(std::string const& name) {
  for (auto const* rows : {&plain_rows(), &optional_rows(), &complex_rows(), &rows_of_data(), &carrier_rows()})
    for (row const& r : *rows)
      if (name == r.name) return &r;
  return nullptr;
}
} // namespace random_programs
