// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/complex/operators.hpp>
#include <varve/kernel/fft.hpp>

/// @file
/// The discrete Fourier transform along one axis, as an operator on which all other transforms are built.
namespace varve {

/// Unscaled transform y_k = sum_j x_j exp(-+ 2 pi i j k / n) of complex numbers along an axis. Attributes {axis},
/// {inverse}. Its transpose under the inner product of complex numbers is the transform in the other direction.
/// O(n log n) per row, for any n.
inline constexpr struct fft_c2c_t {
  static constexpr auto op_name = "fft_c2c";
  template <std::same_as<tensor> X>
  X operator()(X const& z, int axis, bool inverse) const {
    return bind<fft_c2c_t>(dims{axis}, dims{inverse})(z);
  }
} fft_c2c{};

namespace detail {
/// Transforms every row along an axis.
template <class T>
void transform_rows(tensor const& out, tensor const& in, int axis, bool inverse) {
  index_t const n = in.sizes()[axis].number();
  if (in.numel() == 0) return;
  kernel::fft::plan plan(static_cast<std::size_t>(n));
  std::vector<kernel::fft::point> from(static_cast<std::size_t>(n)), to(static_cast<std::size_t>(n));
  dims rows = in.sizes();
  rows[axis] = 1;
  dims const step_in = in.strides(), step_out = out.strides();
  double const sign = inverse ? -1 : 1; // the inverse transform of z is the conjugate of the transform of its conjugate
  auto const* const x = static_cast<std::complex<T> const*>(in.raw());
  auto* const y = static_cast<std::complex<T>*>(out.raw());
  for_each_index(rows, [&](dims const& i) {
    index_t a = 0, b = 0;
    for (int d = 0; d < i.n; ++d) a += i[d].bits * step_in[d].bits, b += i[d].bits * step_out[d].bits;
    index_t const s = step_in[axis].bits, t = step_out[axis].bits;
    for (index_t k = 0; k < n; ++k)
      from[static_cast<std::size_t>(k)] = {x[a + k * s].real(), sign * static_cast<double>(x[a + k * s].imag())};
    plan.run(from.data(), to.data());
    for (index_t k = 0; k < n; ++k) {
      kernel::fft::point const p = to[static_cast<std::size_t>(k)];
      y[b + k * t] = {static_cast<T>(p.re), static_cast<T>(sign * p.im)};
    }
  });
}
} // namespace detail

template <>
struct rules<fft_c2c_t> : rule::linear {
  static constexpr operator_reach reach = operator_reach::axis;
  static constexpr bool takes_complex = true;
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto schema = "(Tensor self, int dim, bool inverse) -> Tensor";
  static constexpr op_kind kind = op_kind::contraction;
  static constexpr attributes checked(attributes const& at, meta const* in) {
    if (at[0].n != 1 || at[1].n != 1) refuse::argument_is_invalid("fft_c2c", "there is one axis and one direction");
    return attributes(dims{wrap_axis(at[0][0], in[0].sizes.n)}, dims{at[1][0] != 0});
  }
  static constexpr meta shape(attributes const&, meta const* in, int) {
    detail::needs_complex<fft_c2c_t>(in[0]);
    return {in[0].type, in[0].sizes};
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& z) {
    meta const in[] = {meta_of(z)};
    meta const m = shape(at, in, 1);
    T y = tensor::empty(m.sizes, m.type);
    int const axis = static_cast<int>(at[0][0].number());
    bool const inverse = at[1][0].number() != 0;
    if (m.type == dtype::complex64) detail::transform_rows<float>(y, z, axis, inverse);
    else detail::transform_rows<double>(y, z, axis, inverse);
    return y;
  }
  template <class Op>
  static auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const&) {
    return bind<fft_c2c_t>(op.a, on_dims([](dims const& d) { return dims{d[0] == 0}; }, op.b))(g);
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return bind<fft_c2c_t>(on_dims(detail::shifted, op.a), op.b)(o.value);
  }
};

} // namespace varve
