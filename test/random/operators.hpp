// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// The table of what a statement may be: how it is called, which operands and attributes it takes, how it is written.
/// What carries functions is in `carriers.hpp`.
#include "custom.hpp"
#include "expression.hpp"

#include <functional>

namespace random_programs {
using function = std::function<values(values const&)>;

/// What kind of statement it is: generators draw a kind first.
enum class kind { pointwise, number, reduction, view, join, integer, in_place, custom, random, carrier };

struct row {
  char const* name;
  kind of;
  /// A letter for each operand: f floating, n a real number, b bool, i integer, c complex, a anything, w floating and
  /// writable.
  char const* operands;
  bool smooth;
  /// The call in C++, with holes as `expression.hpp` says.
  char const* text;
  /// Attributes for these operands; false where there are none.
  bool (*choose)(numbers& draw, values const& x, statement& s) = nullptr;
  /// The call, where it is not its text that is run: of functions, and of what has no name in PyTorch.
  values (*call)(values const& x, statement const& s, std::vector<function> const& bodies) = nullptr;

  values run(values const& x, statement const& s, std::vector<function> const& bodies) const {
    return call ? call(x, s, bodies) : expression(text, x, s).run();
  }
};

namespace choices {
inline dims axes_of(numbers& draw, int rank) {
  dims r;
  for (int k = 0; k < rank; ++k)
    if (draw.once_in(2)) r.push_back(draw.once_in(4) ? k - rank : k);
  if (rank == 0 && draw.once_in(2)) r.push_back(-draw.below(2)); // a number has these two
  return r;
}
inline bool reduce(numbers& draw, values const& x, statement& s) {
  s.at = {draw.once_in(3) ? dims{} : axes_of(draw, x[0].dim()), dims{draw.below(2)}};
  return true;
}
inline bool has_axes(numbers&, values const& x, statement&) { return x[0].dim() > 0; }
/// One axis that is there; of a number 0.
inline bool axis(numbers& draw, values const& x, statement& s) {
  s.at = {dims{draw.below(x[0].dim())}};
  return true;
}
inline bool any_number(numbers& draw, values const& x, statement& s) {
  static std::vector<double> const some{0.5, 2, -1, 3, 1.5, -0.25, 1};
  bool const whole = !varve::is_floating(x[0].dtype()) && draw.once_in(2);
  s.numbers = {whole ? static_cast<double>(draw.below(7) - 3) : draw.of(some)};
  return true;
}
inline bool reshape(numbers& draw, values const& x, statement& s) {
  index_t const n = x[0].numel();
  dims r;
  index_t left = n;
  for (int k = 0; k < 3 && left > 1; ++k) {
    static std::vector<int> const some{1, 2, 3};
    int const d = draw.of(some);
    if (left % d == 0) r.push_back(d), left /= d;
  }
  if (left != 1 || (r.n == 0 && draw.once_in(2))) r.push_back(draw.once_in(3) && n > 0 ? -1 : left);
  s.at = {r};
  return r.n <= 4;
}
inline bool permutation(numbers& draw, values const& x, statement& s) {
  dims r;
  for (int k = 0; k < x[0].dim(); ++k) r.insert(draw.below(r.n + 1), k);
  s.at = {r};
  return r.n > 1;
}
inline bool two_axes(numbers& draw, values const& x, statement& s) {
  int const n = x[0].dim();
  s.at = {dims{draw.below(n)}, dims{draw.below(n) - n}};
  return n > 1;
}
inline bool expand(numbers& draw, values const& x, statement& s) {
  dims r = x[0].sizes();
  for (int k = 0; k < r.n; ++k)
    if (r[k] == 1 && draw.once_in(2)) r[k] = 1 + draw.below(3);
  if (r.n < 3 && draw.once_in(2)) r.insert(0, 1 + draw.below(3));
  s.at = {r};
  return !(r == x[0].sizes());
}
inline bool slice(numbers& draw, values const& x, statement& s) {
  int const n = x[0].dim();
  if (n == 0) return false;
  int const a = draw.below(n);
  int const size = static_cast<int>(x[0].size(a));
  int const from = draw.below(size), to = draw.once_in(8) ? from : from + 1 + draw.below(size - from);
  s.at = {dims{draw.once_in(3) ? a - n : a}, dims{from}, dims{draw.once_in(3) ? size + 3 : to},
          dims{1 + draw.below(2)}};
  return size > 0;
}
inline bool select(numbers& draw, values const& x, statement& s) {
  int const n = x[0].dim();
  if (n == 0) return false;
  int const a = draw.below(n), size = static_cast<int>(x[0].size(a));
  s.at = {dims{a}, dims{draw.once_in(3) ? -1 - draw.below(size) : draw.below(size)}};
  return size > 0;
}
inline bool new_axis(numbers& draw, values const& x, statement& s) {
  s.at = {dims{draw.below(x[0].dim() + 1)}};
  return x[0].dim() < 4;
}
/// A region of what is contiguous, which may overlap itself.
inline bool region(numbers& draw, values const& x, statement& s) {
  index_t const n = x[0].numel();
  if (n == 0 || !x[0].is_contiguous()) return false;
  dims sizes, strides;
  index_t last = 0;
  for (int tries = 0, rank = draw.once_in(4) ? 0 : 1 + draw.below(2); tries < 8 && sizes.n < rank; ++tries) {
    index_t const size = draw.once_in(4) ? 1 : 2 + draw.below(2), stride = draw.once_in(6) ? 0 : 1 + draw.below(3);
    if (last + (size - 1) * stride >= n) continue;
    last += (size - 1) * stride;
    sizes.push_back(size), strides.push_back(stride);
  }
  s.at = {sizes, strides, dims{draw.below(static_cast<int>(n - last))}};
  return true;
}
/// ... and one place of its last axis: what a region shows twice may be written there.
inline bool place_in_region(numbers& draw, values const& x, statement& s) {
  if (!region(draw, x, s) || s.at[0].n == 0) return false;
  int const axis = s.at[0].n - 1;
  s.at.push_back(dims{axis}), s.at.push_back(dims{draw.below(static_cast<int>(s.at[0][axis]))});
  return true;
}
inline bool classes(numbers& draw, values const&, statement& s) {
  s.at = {dims{3 + draw.below(2)}};
  return true;
}
inline bool type(numbers& draw, values const&, statement& s) {
  static std::vector<int> const some{static_cast<int>(dtype::float64), static_cast<int>(dtype::float64),
                                     static_cast<int>(dtype::float32), static_cast<int>(dtype::int64),
                                     static_cast<int>(dtype::int32),   static_cast<int>(dtype::uint8),
                                     static_cast<int>(dtype::bool_)};
  s.at = {dims{draw.of(some)}};
  return true;
}
inline bool shape(numbers& draw, values const& x, statement& s) {
  s.at = {draw.once_in(2) ? x[0].sizes() : dims{}};
  return true;
}
inline bool wide_number(numbers& draw, values const&, statement& s) {
  static std::vector<double> const some{300, -1000, 3000000000.0, 1, 0, 2, -2, 128, 1.5, -0.5};
  s.numbers = {draw.of(some), draw.of(some)};
  return true;
}
} // namespace choices

using bodies_t = std::vector<function> const&;
/// The table, without what carries functions.
inline std::vector<row> const& plain_rows() {
  using enum kind;
  using v = values const&;
  using st = statement const&;
  static std::vector<row> const rows{
      {"neg", pointwise, "f", true, "-{0}"},
      {"sin", pointwise, "f", true, "vv::sin({0})"},
      {"cos", pointwise, "f", true, "vv::cos({0})"},
      {"exp", pointwise, "f", true, "vv::exp({0})"},
      {"tanh", pointwise, "f", true, "vv::tanh({0})"},
      {"sigmoid", pointwise, "f", true, "vv::sigmoid({0})"},
      {"square", pointwise, "f", true, "vv::square({0})"},
      {"log1p_exp", pointwise, "f", true, "vv::log1p_exp({0})", nullptr,
       [](v x, st, bodies_t) { return values{vv::log1p_exp(x[0])}; }},
      {"sqrt", pointwise, "f", false, "vv::sqrt({0})"},
      {"log", pointwise, "f", false, "vv::log({0})"},
      {"reciprocal", pointwise, "f", false, "vv::reciprocal({0})"},
      {"erf", pointwise, "f", true, "vv::erf({0})"},
      {"gelu", pointwise, "f", true, "vv::gelu({0})"},
      {"relu", pointwise, "f", false, "vv::relu({0})"},
      {"abs", pointwise, "n", false, "vv::abs({0})"},
      {"sign", pointwise, "n", false, "vv::sign({0})"},
      {"add", pointwise, "nn", true, "{0} + {1}"},
      {"sub", pointwise, "nn", true, "{0} - {1}"},
      {"mul", pointwise, "na", true, "{0} * {1}"},
      {"mul of floats", pointwise, "ff", true, "{0} * {1}"},
      {"div", pointwise, "fn", false, "{0} / {1}"},
      {"div by square", pointwise, "ff", true, "{0} / (1.5 + {1} * {1})"},
      {"pow", pointwise, "ff", true, "vv::pow(1.5 + {0} * {0}, {1})"},
      {"maximum", pointwise, "nn", false, "vv::maximum({0}, {1})"},
      {"minimum", pointwise, "nn", false, "vv::minimum({0}, {1})"},
      {"where", pointwise, "bff", false, "vv::where({0}, {1}, {2})"},
      {"where of sign", pointwise, "ff", false, "vv::where({0} > 0.0, {0}, {1})"},
      {"clamp", pointwise, "ff", false, "vv::clamp({0}, {1}, vv::abs({1}) + 1.0)"},
      {"detach", pointwise, "f", false, "vv::detach({0})"},
      {"clone", pointwise, "a", true, "vv::clone({0})"},
      {"matmul", pointwise, "ff", true, "vv::matmul({0}, {1})"},

      {"add a number", number, "n", true, "{0} + {n0}", choices::any_number},
      {"number minus", number, "n", true, "{n0} - {0}", choices::any_number},
      {"mul by a number", number, "n", true, "{0} * {n0}", choices::any_number},
      {"div by a number", number, "n", true, "{0} / {n0}", choices::any_number},
      {"add a whole number", number, "n", true, "{0} + {l0}", choices::wide_number},
      {"clamp to numbers", number, "n", false, "vv::clamp({0}, {l0}, {l1})", choices::wide_number},
      {"less than a number", number, "n", false, "{0} < {l0}", choices::wide_number},
      {"maximum with a number", number, "n", false, "vv::maximum({0}, {n0})", choices::any_number,
       [](v x, st s, bodies_t) { return values{vv::maximum(x[0], s.numbers[0])}; }},

      {"sum", reduction, "n", true, "vv::sum({0}, {a0}, {k1})", choices::reduce},
      {"mean", reduction, "f", true, "vv::mean({0}, {a0}, {k1})", choices::reduce},
      {"amax", reduction, "n", false, "vv::amax({0}, {a0}, {k1})", choices::reduce},
      {"amin", reduction, "n", false, "vv::amin({0}, {a0}, {k1})", choices::reduce},
      {"argmax", reduction, "n", false, "vv::argmax({0}, {i0})", choices::axis},
      {"softmax", reduction, "f", true, "vv::softmax({0}, {i0})", choices::axis},
      {"logsumexp", reduction, "f", true, "vv::logsumexp({0}, {a0})", choices::axis},

      {"reshape", view, "a", true, "vv::reshape({0}, {a0})", choices::reshape},
      {"reshape of clone", join, "a", true, "vv::reshape(vv::clone({0}), {a0})", choices::reshape},
      {"permute", view, "a", true, "vv::permute({0}, {a0})", choices::permutation},
      {"transpose", view, "a", true, "vv::transpose({0}, {i0}, {i1})", choices::two_axes},
      {"expand", view, "a", true, "vv::expand({0}, {a0})", choices::expand},
      {"slice", view, "a", true, "vv::slice({0}, {i0}, {i1}, {i2}, {i3})", choices::slice},
      {"select", view, "a", true, "vv::select({0}, {i0}, {i1})", choices::select},
      {"unsqueeze", view, "a", true, "vv::unsqueeze({0}, {i0})", choices::new_axis},
      {"squeeze", view, "a", true, "vv::squeeze({0})"},
      {"as_strided", view, "a", true, "vv::as_strided({0}, {a0}, {a1}, {a2})", choices::region},
      {"place in region", view, "a", true, "vv::select(vv::as_strided({0}, {a0}, {a1}, {a2}), {i3}, {i4})",
       choices::place_in_region},

      {"onto", join, "ff", true, "{1} * 0.5 + vv::sum({0})"},
      {"counter", join, "", true, "vv::zeros({}, vv::dtype::int64)"},
      {"cat", join, "ff", true, "vv::cat(values{{0}, {1}}, {i0})", choices::axis},
      {"stack", join, "ff", true, "vv::stack(values{{0}, {1}}, {i0})", choices::new_axis},
      {"cat of one", join, "f", true, "vv::cat(values{{0}}, {i0})", choices::axis},
      {"gather", join, "fi", true, "vv::gather({0}, {i0}, {1})", choices::axis},
      {"scatter_add", join, "fif", true, "vv::scatter_add({0}, {i0}, {1}, {2})", choices::axis},
      {"ones_like", join, "f", true, "vv::ones_like({0})"},
      {"zeros", join, "f", true, "vv::zeros({a0}, vv::dtype::float64)", choices::shape},

      {"is positive", integer, "f", false, "{0} > 0.0"},
      {"lt", integer, "nn", false, "{0} < {1}"},
      {"ge", integer, "nn", false, "{0} >= {1}"},
      {"ne", integer, "an", false, "{0} != {1}"},
      {"to", integer, "a", false, "vv::to({0}, {t0})", choices::type},
      {"one_hot", integer, "i", false, "vv::one_hot(vv::clamp({0}, 0, 2), {i0})", choices::classes},
      {"count on", integer, "if", false, "{0} + 1 + vv::to(vv::sum({1}) > 0.0, vv::dtype::int64)"},
      {"index", integer, "i", false, "vv::clamp({0}, 0, 1)"},

      {"add_", in_place, "wn", true, "vv::add_({0}, {1})"},
      {"mul_", in_place, "wn", true, "vv::mul_({0}, {1})"},
      {"sub_", in_place, "wn", true, "vv::sub_({0}, {1})"},
      {"copy_", in_place, "wa", true, "vv::copy_({0}, {1})"},
      {"tanh_", in_place, "w", true, "vv::tanh_({0})"},
      {"cos_", in_place, "w", true, "vv::cos_({0})"},
      {"mul_ by a number", in_place, "w", true, "vv::mul_({0}, {n0})", choices::any_number},
      {"fill_", in_place, "w", true, "vv::fill_({0}, {n0})", choices::any_number},

      {"mul_ of data", in_place, "wn", false, "vv::mul_({0}.data(), {1})"},
      {"fill_ of data", in_place, "w", false, "vv::fill_({0}.data(), {n0})", choices::any_number},

      {"square_by_seven", custom, "f", false, "square_by_seven::apply({0})", nullptr,
       [](v x, st, bodies_t) { return values{square_by_seven::apply(x[0])}; }},
      {"sine_by_argument", custom, "f", false, "sine_by_argument::apply({0})", nullptr,
       [](v x, st, bodies_t) { return values{sine_by_argument::apply(x[0])}; }},
      {"product_and_sum", custom, "ff", false, "product_and_sum::apply({0}, {1})", nullptr,
       [](v x, st, bodies_t) {
         auto const [p, q] = product_and_sum::apply(x[0], x[1]);
         return values{p, q};
       }},
      {"double_and_mark", custom, "f", false, "double_and_mark::apply({0})", nullptr,
       [](v x, st, bodies_t) {
         auto const [p, q] = double_and_mark::apply(x[0]);
         return values{p, q};
       }},
      {"step_through", custom, "f", false, "step_through::apply({0})", nullptr,
       [](v x, st, bodies_t) { return values{step_through::apply(x[0])}; }},

      {"randn", random, "f", true, "vv::randn({a0}, vv::dtype::float64)", choices::shape},
  };
  return rows;
}
} // namespace random_programs
