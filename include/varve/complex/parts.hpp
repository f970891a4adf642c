// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/at.hpp>
#include <varve/composite/stacks.hpp>
#include <varve/op/all.hpp>

/// @file
/// Complex tensors and their parts. The dtypes are complex64 and complex128, with elements of type
/// `std::complex<float>` and `std::complex<double>` (`from_data`, `data`, `item`, `to_vector`). Static values are real.
///
/// Derivatives are PyTorch's: the gradient of a real L with respect to z = x + iy is dL/dx + i dL/dy. A cotangent thus
/// represents a vector of the real and imaginary parts. `vjp` is the transpose of `jvp` under the inner product of such
/// vectors; all rules here follow from that. A real operand of a complex operator gets the real part of the cotangent.
namespace varve {

namespace detail {
template <class Tag>
constexpr void needs_complex(meta const& m) {
  if (!is_complex(m.type))
    refuse::dtype_is_not_supported((std::string(Tag::op_name) + " of real numbers").c_str(), name(m.type));
}
/// Copies elements between parts of complex tensors, or between a part and a real tensor, of the same shape.
VARVE_NOINLINE inline void copy_part(tensor const& out, bool out_imaginary, tensor const& in, bool in_imaginary) {
  kernel::copy_strided(in.sizes(), part_operand(out, out_imaginary).of, part_operand(in, in_imaginary).of);
}
/// Rules of the real or the imaginary part. Both are linear over the real numbers, so that the tangent of a part is the
/// part of the tangent.
template <class Tag, bool Imaginary>
struct part_rules : rule::linear {
  static constexpr operator_reach reach = operator_reach::element;
  static constexpr bool takes_complex = true;
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr op_kind kind = op_kind::contraction;
  static constexpr meta shape(attributes const&, meta const* in, int) {
    needs_complex<Tag>(in[0]);
    return {part_type(in[0].type), in[0].sizes, in[0].number};
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& z) {
    meta const in[] = {meta_of(z)};
    meta const m = shape(at, in, 1);
    T r = tensor::empty(m.sizes, m.type);
    copy_part(r, false, z, Imaginary);
    if (m.number) r.mark_number();
    return r;
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return op(o.value);
  }
};
} // namespace detail

/// The real part of complex numbers, as a copy. `real` also accepts real numbers.
inline constexpr struct real_part_t {
  static constexpr auto op_name = "real";
  template <std::same_as<tensor> X>
  X operator()(X const& z) const {
    return bound<real_part_t>{}(z);
  }
} real_part{};
/// The imaginary part of complex numbers, as a copy.
inline constexpr struct imaginary_part_t {
  static constexpr auto op_name = "imag";
  template <std::same_as<tensor> X>
  X operator()(X const& z) const {
    return bound<imaginary_part_t>{}(z);
  }
} imaginary_part{};
/// `complex(re, im)`: complex numbers from their parts (`torch.complex`). The parts broadcast and have the same dtype,
/// float32 or float64.
inline constexpr struct complex_t {
  static constexpr auto op_name = "complex";
  template <std::same_as<tensor> X>
  X operator()(X const& re, X const& im) const {
    if (re.dtype() != im.dtype()) refuse::dtypes_differ("complex", name(re.dtype()), name(im.dtype()));
    dims const s = broadcast(re.sizes(), im.sizes());
    return bound<complex_t>{}(X(broadcast_to(re, s)), X(broadcast_to(im, s)));
  }
} complex{};

template <>
struct rules<complex_t> {
  static constexpr operator_reach reach = operator_reach::element;
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto schema = "(Tensor real, Tensor imag) -> Tensor";
  static constexpr op_kind kind = op_kind::contraction;
  static constexpr int arity = 2;
  static constexpr attributes checked(attributes const& at, meta const*) { return at; }
  static constexpr meta shape(attributes const&, meta const* in, int) {
    for (int k = 0; k < 2; ++k)
      if (in[k].type != dtype::float32 && in[k].type != dtype::float64)
        refuse::dtype_is_not_supported("complex", name(in[k].type));
    if (in[0].type != in[1].type) refuse::dtypes_differ("complex", name(in[0].type), name(in[1].type));
    if (!(in[0].sizes == in[1].sizes)) refuse::shapes_do_not_match("complex", in[0].sizes, in[1].sizes);
    return {complex_type(in[0].type), in[0].sizes, in[0].number && in[1].number};
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& re, T const& im) {
    meta const in[] = {meta_of(re), meta_of(im)};
    meta const m = shape(at, in, 2);
    T r = tensor::empty(m.sizes, m.type);
    detail::copy_part(r, false, re, false);
    detail::copy_part(r, true, im, false);
    if (m.number) r.mark_number();
    return r;
  }
  template <std::size_t I, class Op>
  static auto jvp(arg_t<I>, Op const& op, value auto const& d, value auto const&, value auto const&,
                  value auto const&) {
    if constexpr (I == 0) return op(d, detail::constant_zeros(d));
    else return op(detail::constant_zeros(d), d);
  }
  template <std::size_t I, class Op>
  static auto vjp(arg_t<I>, Op const&, value auto const& g, value auto const&, value auto const&, value auto const&) {
    if constexpr (I == 0) return real_part(g);
    else return imaginary_part(g);
  }
  template <class Op, class N, class A, class B>
  static constexpr auto batch(Op const& op, N const& n, A const& a, B const& b) {
    return op(materialize(a, n), materialize(b, n));
  }
};
template <>
struct rules<real_part_t> : detail::part_rules<real_part_t, false> {
  template <class Op>
  static auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const&) {
    return bound<complex_t>{}(g, detail::constant_zeros(g));
  }
};
template <>
struct rules<imaginary_part_t> : detail::part_rules<imaginary_part_t, true> {
  template <class Op>
  static auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const&) {
    return bound<complex_t>{}(detail::constant_zeros(g), g);
  }
};

/// True if the tensor has a complex dtype (`torch.is_complex`).
template <std::same_as<tensor> T>
bool is_complex(T const& x) {
  return is_complex(x.dtype());
}
/// Returns the real part as a copy, or real numbers themselves (`torch.real`). To write into one of the parts, use
/// `view_as_real`.
template <std::same_as<tensor> T>
T real(T const& x) {
  return is_complex(x.dtype()) ? real_part(x) : x;
}
/// Returns the imaginary part as a copy (`torch.imag`). Throws `dtype_error` for real numbers.
template <std::same_as<tensor> T>
T imag(T const& x) {
  return imaginary_part(x);
}
/// Returns the conjugate as a copy, or real numbers themselves (`torch.conj_physical`; unlike `torch.conj` it is not
/// lazy).
template <std::same_as<tensor> T>
T conj(T const& x) {
  return is_complex(x.dtype()) ? complex(real_part(x), T(neg(imaginary_part(x)))) : x;
}
/// Returns the conjugate transpose of matrices (`Tensor.mH`, `torch.adjoint`).
template <std::same_as<tensor> T>
T adjoint(T const& x) {
  return transpose(conj(x), -2, -1);
}
/// Returns size (cos(angle) + i sin(angle)) (`torch.polar`).
template <std::same_as<tensor> T>
T polar(T const& size, T const& angle) {
  return complex(T(mul(size, cos(angle))), T(mul(size, sin(angle))));
}

namespace detail {
/// True if a tensor's elements are directly accessible in memory: no transform or mode wraps it, and no gradient is
/// recorded.
inline bool is_in_memory(tensor const& x) {
  constexpr dispatch_key_set there{dispatch_key::cpu, dispatch_key::inplace_or_view, dispatch_key::autograd_cpu,
                                   dispatch_key::complex_value};
  return this_thread_state.quiet() && x.has_data() && !(x.keys().bits & ~there.bits & ~dispatch_key_set::history_bit) &&
         !(x.has_history() && this_thread_state.grad_mode);
}
/// Marks a copy that stands for a view. Writing into it is refused, because the write would not reach the original.
template <class T>
T instead_of_view(T const& copy, T const& of) {
  bool const same = copy.is_wrapped() == of.is_wrapped() && copy.layer() == of.layer();
  if (same && !copy.base().defined() && !copy.is_inference())
    copy.set_base(of.base().defined() ? of.base() : of, view_origin::other_dtype);
  return copy;
}
} // namespace detail

/// Returns the parts as a last dimension of size 2 (`torch.view_as_real`). It is a view: both tensors share writes.
/// While a transform or mode observes calls, or gradients are recorded, it is a copy instead.
template <std::same_as<tensor> T>
T view_as_real(T const& z) {
  if (!is_complex(z.dtype())) refuse::dtype_is_not_supported("view_as_real", name(z.dtype()));
  if (!detail::is_in_memory(z))
    return detail::instead_of_view(T(stack(std::vector<T>{real_part(z), imaginary_part(z)}, -1)), z);
  return detail::parts_in_memory(z);
}
/// Returns complex numbers whose parts are a last dimension of size 2 (`torch.view_as_complex`). It is a view or a
/// copy, as for `view_as_real`. The dtype must be float32 or float64, both parts must be adjacent, and all other
/// strides must be even.
template <std::same_as<tensor> T>
T view_as_complex(T const& x) {
  if (x.dtype() != dtype::float32 && x.dtype() != dtype::float64)
    refuse::dtype_is_not_supported("view_as_complex", name(x.dtype()));
  dims const s = x.sizes();
  if (s.n == 0 || s[s.n - 1] != 2)
    refuse::argument_is_invalid("view_as_complex", "the last dimension must be of size 2");
  if (!detail::is_in_memory(x)) return detail::instead_of_view(complex(T(select(x, -1, 0)), T(select(x, -1, 1))), x);
  dims strides = x.strides();
  bool fits = strides[s.n - 1] == 1 && x.where().offset % 2 == 0;
  for (int k = 0; k + 1 < s.n; ++k) fits = fits && strides[k] % 2 == 0;
  if (!fits)
    refuse::argument_is_invalid("view_as_complex",
                                "the parts of a number must lie one after the other, all others at even strides");
  for (int k = 0; k + 1 < s.n; ++k) strides[k] = strides[k] / 2;
  return x.reinterpreted({s.sub(0, s.n - 1), strides.sub(0, s.n - 1), x.where().offset / 2, true},
                         complex_type(x.dtype()));
}
/// Returns a complex number as a tensor of rank 0. As a plain number does, it raises dtypes only by category.
template <detail::complex_number C, std::same_as<tensor> T = tensor>
T complex_scalar(C const& z) {
  T r = tensor::from_data(&z, {});
  r.mark_number();
  return r;
}

} // namespace varve
