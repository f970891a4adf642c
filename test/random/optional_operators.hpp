// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Rows of the table for operators of the optional headers and composites: sorts, scans, scatters, matrices, losses.
/// Half of the programs draw from them as well.
#include "operators.hpp"

namespace random_programs {
namespace choices {
/// One axis that has elements, and the last place on it.
inline bool axis_and_last(numbers& draw, values const& x, statement& s) {
  if (!axis(draw, x, s)) return false;
  s.at.push_back(dims{x[0].size(static_cast<int>(s.at[0][0])) - 1});
  return s.at[1][0] >= 0;
}
/// ... and how many of them.
inline bool axis_and_count(numbers& draw, values const& x, statement& s) {
  if (!axis_and_last(draw, x, s)) return false;
  s.at[1] = dims{1 + draw.below(static_cast<int>(s.at[1][0]) + 1)};
  return true;
}
/// Windows along an axis: their size and step.
inline bool windows(numbers& draw, values const& x, statement& s) {
  s.at = {};
  if (x[0].dim() > 2 || !axis_and_count(draw, x, s)) return false;
  s.at.push_back(dims{1 + draw.below(2)});
  return true;
}
inline bool range_on_axis(numbers& draw, values const& x, statement& s) {
  if (!axis_and_count(draw, x, s)) return false;
  index_t const size = x[0].size(static_cast<int>(s.at[0][0]));
  s.at.push_back(dims{draw.below(static_cast<int>(size - s.at[1][0]) + 1)});
  return true;
}
inline bool shift(numbers& draw, values const& x, statement& s) {
  if (!axis(draw, x, s)) return false;
  s.at.push_back(dims{draw.below(5) - 2});
  return true;
}
/// Two axes, and a diagonal of them.
inline bool diagonal(numbers& draw, values const& x, statement& s) {
  if (x[0].dim() < 2) return false;
  int const n = x[0].dim(), a = draw.below(n), b = (a + 1 + draw.below(n - 1)) % n;
  s.at = {dims{draw.below(3) - 1}, dims{a}, dims{b}};
  return true;
}
inline bool triangle(numbers& draw, values const& x, statement& s) {
  s.at = {dims{draw.below(3) - 1}};
  return x[0].dim() >= 2;
}
inline bool margins(numbers& draw, values const& x, statement& s) {
  if (x[0].dim() == 0 || x[0].dim() > 2) return false;
  s.at = {dims{draw.below(3) - 1, draw.below(2)}};
  s.numbers = {draw.below(3) * 0.5};
  return x[0].size(-1) > 1;
}
/// A matrix of some rows.
inline bool matrix(numbers&, values const& x, statement& s) {
  if (x[0].dim() != 2 || x[0].numel() == 0) return false;
  s.at = {dims{x[0].size(0)}};
  return true;
}
/// The last place of the first axis.
inline bool first_and_last(numbers&, values const& x, statement& s) {
  if (x[0].dim() == 0 || x[0].size(0) == 0) return false;
  s.at = {dims{0}, dims{x[0].size(0) - 1}};
  return true;
}
inline bool last_size(numbers&, values const& x, statement& s) {
  if (x[0].dim() == 0 || x[0].size(-1) < 2) return false;
  s.at = {dims{x[0].size(-1)}};
  return true;
}
inline bool how_to_reduce(numbers& draw, values const& x, statement& s) {
  if (!axis_and_last(draw, x, s)) return false;
  s.at.push_back(dims{draw.below(5)});
  return true;
}
} // namespace choices

inline std::vector<row> const& optional_rows() {
  using enum kind;
  static std::vector<row> const rows{
      {"asinh", pointwise, "f", true, "vv::asinh({0})"},
      {"atan", pointwise, "f", true, "vv::atan({0})"},
      {"silu", pointwise, "f", true, "vv::silu({0})"},
      {"softplus", pointwise, "f", true, "vv::softplus({0})"},
      {"mish", pointwise, "f", true, "vv::mish({0})"},
      {"logsigmoid", pointwise, "f", true, "vv::logsigmoid({0})"},
      {"sinc", pointwise, "f", true, "vv::sinc({0})"},
      {"expm1", pointwise, "f", true, "vv::expm1({0} * 0.5)"},
      {"lgamma", pointwise, "f", true, "vv::lgamma(1.5 + {0} * {0})"},
      {"i0", pointwise, "f", true, "vv::i0({0})"},
      {"erfinv", pointwise, "f", true, "vv::erfinv(vv::tanh({0}) * 0.9)"},
      {"digamma", pointwise, "f", true, "vv::digamma(1.5 + {0} * {0})"},
      {"polygamma", pointwise, "f", true, "vv::polygamma(1, 1.5 + {0} * {0})"},
      {"elu", pointwise, "f", false, "vv::elu({0})"},
      {"selu", pointwise, "f", false, "vv::selu({0})"},
      {"hardtanh", pointwise, "f", false, "vv::hardtanh({0})"},
      {"hardswish", pointwise, "f", false, "vv::hardswish({0})"},
      {"leaky_relu", pointwise, "f", false, "vv::leaky_relu({0})"},
      {"softsign", pointwise, "f", false, "vv::softsign({0})"},
      {"hardshrink", pointwise, "f", false, "vv::hardshrink({0})"},
      {"floor", pointwise, "f", false, "vv::floor({0})"},
      {"frac", pointwise, "f", false, "vv::frac({0})"},
      {"round", pointwise, "f", false, "vv::round({0})"},
      {"entr", pointwise, "f", false, "vv::entr({0})"},
      {"atan2", pointwise, "ff", true, "vv::atan2({0}, 1.5 + {1} * {1})"},
      {"logaddexp", pointwise, "ff", true, "vv::logaddexp({0}, {1})"},
      {"hypot", pointwise, "ff", false, "vv::hypot({0}, {1})"},
      {"copysign", pointwise, "ff", false, "vv::copysign({0}, {1})"},
      {"fmod", pointwise, "ff", false, "vv::fmod({0}, {1})"},
      {"remainder", pointwise, "ff", false, "vv::remainder({0}, {1})"},
      {"xlogy", pointwise, "ff", false, "vv::xlogy({0}, {1})"},
      {"fmax", pointwise, "ff", false, "vv::fmax({0}, {1})"},
      {"fmin", pointwise, "ff", false, "vv::fmin({0}, {1})"},
      {"atan2 anywhere", pointwise, "ff", false, "vv::atan2({0}, {1})"},
      {"logaddexp2", pointwise, "ff", false, "vv::logaddexp2({0}, {1})"},
      {"lerp", pointwise, "fff", true, "vv::lerp({0}, {1}, {2})"},
      {"addcmul", pointwise, "fff", true, "vv::addcmul({0}, {1}, {2})"},
      {"mse_loss", reduction, "ff", true, "vv::mse_loss({0}, {1})"},
      {"smooth_l1_loss", reduction, "ff", false, "vv::smooth_l1_loss({0}, {1})"},
      {"huber_loss", reduction, "ff", false, "vv::huber_loss({0}, {1})"},
      {"prod", reduction, "f", true, "vv::prod({0}, {i0})", choices::axis},
      {"var", reduction, "f", true, "vv::var({0}, {a0})", choices::axis},
      {"std", reduction, "f", false, "vv::std_dev({0}, {a0})", choices::axis},
      {"vector_norm", reduction, "f", false, "vv::vector_norm({0}, 2.0, {a0})", choices::axis},
      {"cumsum", reduction, "n", true, "vv::cumsum({0}, {i0})", choices::axis},
      {"cumprod", reduction, "f", true, "vv::cumprod({0}, {i0})", choices::axis},
      {"logcumsumexp", reduction, "f", true, "vv::logcumsumexp({0}, {i0})", choices::axis},
      {"cummax", reduction, "n", false, "vv::cummax({0}, {i0})", choices::axis},
      {"cummin", reduction, "n", false, "vv::cummin({0}, {i0})", choices::axis},
      {"max_along", reduction, "n", false, "vv::max_along({0}, {i0})", choices::axis_and_last},
      {"median", reduction, "f", false, "vv::median({0}, {i0})", choices::axis_and_last},
      {"sort", reduction, "n", false, "vv::sort({0}, {i0}, 1)", choices::axis},
      {"topk", reduction, "n", false, "vv::topk({0}, {i1}, {i0})", choices::axis_and_count},
      {"kthvalue", reduction, "n", false, "vv::kthvalue({0}, {i1}, {i0})", choices::axis_and_count},
      {"mode", reduction, "n", false, "vv::mode({0}, {i0})", choices::axis_and_last},
      {"nansum", reduction, "f", false, "vv::nansum({0})"},
      {"argmin", reduction, "n", false, "vv::argmin({0}, {i0})", choices::axis_and_last},
      {"argsort", integer, "n", false, "vv::argsort({0}, {i0})", choices::axis},
      {"count_nonzero", integer, "a", false, "vv::count_nonzero({0})"},
      {"isfinite", integer, "f", false, "vv::isfinite({0})"},
      {"logical_and", integer, "aa", false, "vv::logical_and({0}, {1})"},
      {"any", integer, "a", false, "vv::any({0}, {i0})", choices::axis},
      {"bitwise_xor", integer, "ii", false, "vv::bitwise_xor({0}, {1})"},
      {"floor_divide", integer, "nn", false, "vv::floor_divide({0}, {1})"},
      {"diagonal", view, "a", true, "vv::diagonal({0}, {i0}, {i1}, {i2})", choices::diagonal},
      {"narrow", view, "a", true, "vv::narrow({0}, {i0}, {i2}, {i1})", choices::range_on_axis},
      {"movedim", view, "a", true, "vv::movedim({0}, {i0}, {i1})", choices::two_axes},
      {"chunk", view, "a", true, "vv::chunk({0}, 2, {i0})", choices::axis_and_last},
      {"unbind", view, "a", true, "vv::unbind({0}, {i0})", choices::axis_and_last},
      {"split", view, "a", true, "vv::split({0}, {i1}, {i0})", choices::axis_and_count},
      {"unfold", join, "a", true, "vv::clone(vv::unfold({0}, {i0}, {i1}, {i2}))", choices::windows},
      {"flip", join, "f", true, "vv::flip({0}, {a0})", choices::axis},
      {"roll", join, "f", true, "vv::roll({0}, {a1}, {a0})", choices::shift},
      {"tril", join, "f", true, "vv::tril({0}, {i0})", choices::triangle},
      {"triu", join, "f", true, "vv::triu({0}, {i0})", choices::triangle},
      {"diagonal_scatter", join, "f", true,
       "vv::diagonal_scatter({0}, vv::diagonal({0}, {i0}, {i1}, {i2}) * 2.0, {i0}, {i1}, {i2})", choices::diagonal},
      {"pad", join, "f", true, "vv::constant_pad_nd({0}, {a0}, {n0})", choices::margins},
      {"outer", join, "ff", true, "vv::outer(vv::ravel({0}), vv::ravel({1}))"},
      {"repeat_interleave", join, "a", true, "vv::repeat_interleave({0}, 2, {i0})", choices::axis},
      {"index_select", join, "ff", false,
       "vv::index_select({0}, {i0}, vv::clamp(vv::argsort(vv::ravel({1}), 0), 0, {i1}))", choices::axis_and_last},
      {"index_add", join, "ff", false,
       "vv::index_add({0}, {i0}, vv::clamp(vv::argsort(vv::ravel({1}), 0), 0, {i1}), vv::sin(vv::index_select({0}, "
       "{i0}, vv::clamp(vv::argsort(vv::ravel({1}), 0), 0, {i1}))))",
       choices::axis_and_last},
      {"take_along_dim", join, "ff", false, "vv::take_along_dim({0}, vv::argsort({1}, {i0}), {i0})", choices::axis},
      {"scatter_reduce", join, "f", false,
       "vv::scatter_reduce({0}, {i0}, vv::clamp(vv::argsort({0}, {i0}), 0, 1), vv::cos({0}), "
       "static_cast<vv::index_reduction>({i2}))",
       choices::how_to_reduce},
      {"take", join, "ff", false, "vv::take({0}, vv::clamp(vv::argsort(vv::ravel({1}), 0), 0, 0))"},
      {"rows by index", join, "ff", false, "{0}.at(vv::clamp(vv::argsort(vv::ravel({1}), 0), 0, {i1}))",
       choices::first_and_last},
      {"solve", join, "ff", true,
       "vv::solve(vv::matmul({0}, vv::transpose({0}, 0, 1)) + 3.0 * vv::eye({i0}, vv::dtype::float64), {0} * "
       "vv::sum({1}))",
       choices::matrix},
      {"inverse", join, "f", true,
       "vv::inverse(vv::matmul({0}, vv::transpose({0}, 0, 1)) + 3.0 * vv::eye({i0}, vv::dtype::float64))",
       choices::matrix},
      {"det", reduction, "f", true,
       "vv::det(vv::matmul({0}, vv::transpose({0}, 0, 1)) * 0.2 + vv::eye({i0}, vv::dtype::float64))", choices::matrix},
      {"cholesky", join, "f", true,
       "vv::cholesky(vv::matmul({0}, vv::transpose({0}, 0, 1)) + 3.0 * vv::eye({i0}, vv::dtype::float64))",
       choices::matrix},
      {"einsum", join, "ff", true, "vv::einsum(\"...i,...j->...ij\", values{{0}, {1}})", choices::last_size},
      {"layer_norm", join, "f", true, "vv::layer_norm({0}, {a0})", choices::last_size},
      {"log_softmax", reduction, "f", true, "vv::log_softmax({0}, {i0})", choices::axis},
      {"glu", join, "f", true, "vv::glu(vv::stack(values{{0}, {0} * 2.0}, 0), 0)"},
      {"cross_entropy", reduction, "f", true, "vv::cross_entropy({0}, vv::softmax({0} * 0.5, -1))", choices::last_size},
      {"attention", join, "ff", true, "vv::scaled_dot_product_attention({0}, {0}, {0} + vv::sum({1}))",
       choices::matrix},
      {"sigmoid_", in_place, "w", true, "vv::sigmoid_({0})"},
      {"neg_", in_place, "w", true, "vv::neg_({0})"},
      {"relu_", in_place, "w", false, "vv::relu_({0})"},
      {"zero_", in_place, "w", true, "vv::zero_({0})"},
      {"clamp_", in_place, "w", false, "vv::clamp_({0}, -0.5, 0.75)"},
      {"div_", in_place, "w", true, "vv::div_({0}, 2.0)"},
      {"rand", random, "f", true, "vv::rand({a0}, vv::dtype::float64)", choices::shape},
      {"dropout", random, "f", true, "vv::dropout({0}, 0.5)"},
  };
  return rows;
}
} // namespace random_programs
