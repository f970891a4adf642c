// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/complex/functions.hpp>
#include <varve/core/at_start.hpp>

/// @file
/// Implements varve's operators for complex tensors. The dispatcher runs them at the key `complex_value`, above
/// transforms and autograd. These therefore only handle the operators of this folder, and real operators on the parts.
/// Each operator says how it computes (`complex_rule`); others refuse complex operands.
namespace varve::detail {

/// Returns the common dtype of the operands that are numbers.
inline dtype type_of_numbers(boxed_args const& x, unsigned others) {
  meta m[3];
  int n = 0;
  for (int k = 0; k < x.size() && n < 3; ++k)
    if (!(others >> k & 1)) m[n++] = meta_of(x[k]);
  return n == 1 ? m[0].type : n == 2 ? result_type(m[0], m[1]) : result_type(m[0], m[1], m[2]);
}
/// Converts a number to a dtype. Plain numbers stay marked as such.
template <class T>
T as_complex(T const& x, dtype type) {
  return to(x, type);
}
/// Applies an operator that is linear in all its numbers together to real and imaginary parts. The operands given by
/// the bits of `others` are indices and conditions.
template <class T>
T by_parts(boxed_op const& op, boxed_args const& x, unsigned others) {
  dtype const type = type_of_numbers(x, others);
  boxed_args re, im;
  for (int k = 0; k < x.size(); ++k) {
    if (others >> k & 1) {
      re.push_back(x[k]), im.push_back(x[k]);
    } else {
      T const z = as_complex(T(x[k]), type);
      re.push_back(real_part(z)), im.push_back(imaginary_part(z));
    }
  }
  return bound<complex_t>{}(T(op(re)), T(op(im)));
}
/// Multiplies or divides a complex number by a real one.
template <class T>
T scaled(boxed_op const& op, boxed_args const& x, bool second_is_real) {
  boxed_args re, im;
  for (int k = 0; k < 2; ++k) {
    bool const is_factor = (k == 1) == second_is_real;
    re.push_back(is_factor ? T(x[k]) : T(real_part(T(x[k]))));
    im.push_back(is_factor ? T(x[k]) : T(imaginary_part(T(x[k]))));
  }
  T const y = bound<complex_t>{}(T(op(re)), T(op(im)));
  return as_complex(y, type_of_numbers(x, 0));
}
template <class T>
T of_two(complex_pair f, boxed_args const& x) {
  dtype const type = type_of_numbers(x, 0);
  dims const s = broadcast(x[0].sizes(), x[1].sizes());
  return complex_pair_op(T(broadcast_to(as_complex(T(x[0]), type), s)), T(broadcast_to(as_complex(T(x[1]), type), s)),
                         f);
}
template <class T>
T are_equal(boxed_args const& x) {
  dtype const type = type_of_numbers(x, 0);
  T const a = as_complex(T(x[0]), type), b = as_complex(T(x[1]), type);
  return mul(eq(real_part(a), real_part(b)), eq(imaginary_part(a), imaginary_part(b)));
}
/// Computes a complex matrix product by four real ones.
template <class T>
T product_of_matrices(boxed_op const& op, boxed_args const& x) {
  if (x[0].dtype() != x[1].dtype()) refuse::dtypes_differ("matmul", name(x[0].dtype()), name(x[1].dtype()));
  T const ar = real_part(T(x[0])), ai = imaginary_part(T(x[0])), br = real_part(T(x[1])), bi = imaginary_part(T(x[1]));
  auto const times = [&](T const& a, T const& b) { return T(op(boxed_args(a, b))); };
  return bound<complex_t>{}(T(sub(times(ar, br), times(ai, bi))), T(add(times(ar, bi), times(ai, br))));
}
/// Writes the result of the functional operator into the first operand.
template <class T>
T written(boxed_op const& op, boxed_args const& x) {
  boxed_args before; // saved operands must keep their values
  for (tensor const& t : x) before.push_back(t.shares_storage(x[0]) ? T(clone(T(t))) : T(t));
  T const y = call_boxed({op.table->functional, op.at}, before);
  if (category(y.dtype()) > category(x[0].dtype()))
    refuse::dtype_does_not_fit(op.name(), name(y.dtype()), name(x[0].dtype()));
  if (!is_expandable(y.sizes(), x[0].sizes())) refuse::shapes_do_not_match(op.name(), x[0].sizes(), y.sizes());
  copy_(T(x[0]), y);
  return x[0];
}
/// Calls an operator with a complex operand. Returns an undefined tensor if it has no complex implementation.
template <class T>
tensor call_with_complex(boxed_op const& op, boxed_args const& x) {
  if (op.table->kind == op_kind::mutation) return op.table->functional ? written<T>(op, x) : T();
  bool const both = x.size() == 2 && is_complex(x[0].dtype()) && is_complex(x[1].dtype());
  switch (complex_rule const f = op.table->of_complex) {
  case complex_rule::refused:
    return {};
  case complex_rule::by_parts:
    return by_parts<T>(op, x, 0);
  case complex_rule::by_parts_but_operand_0:
    return by_parts<T>(op, x, 1);
  case complex_rule::by_parts_but_operand_1:
    return by_parts<T>(op, x, 2);
  case complex_rule::mul:
    return both ? of_two<T>(complex_pair::mul, x) : scaled<T>(op, x, is_complex(x[0].dtype()));
  case complex_rule::div:
    return both || is_complex(x[1].dtype()) ? of_two<T>(complex_pair::div, x) : scaled<T>(op, x, true);
  case complex_rule::pow:
    return of_two<T>(complex_pair::pow, x);
  case complex_rule::abs:
    return complex_abs(T(x[0]));
  case complex_rule::rsqrt:
    return reciprocal(sqrt(T(x[0])));
  case complex_rule::sigmoid:
    return reciprocal(add(exp(T(neg(T(x[0])))), 1));
  case complex_rule::eq:
    return are_equal<T>(x);
  case complex_rule::ne:
    return eq(are_equal<T>(x), false);
  case complex_rule::mm:
    return product_of_matrices<T>(op, x);
  default:
    return complex_map_op(T(x[0]), f);
  }
}
/// Registers the complex operators with the dispatcher, in every program that includes this header.
VARVE_FIRST inline at_start const complex_is_there{
    [] { complex_kernels.store(&call_with_complex<tensor>, std::memory_order_release); }};

} // namespace varve::detail
