// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/index_select.hpp>
#include <varve/composite/repeat.hpp>
#include <varve/fft/transform.hpp>

#include <optional>
#include <string_view>

/// @file
/// Fourier transforms (`torch.fft`). `n`, or `s` for several axes, is the length to which the operand is truncated or
/// padded with zeros. Axes may be negative to count from the end. `norm`: "backward" divides the inverse by n,
/// "forward" the transform by n, "ortho" both by the square root of n. Integers and bool are converted to float32;
/// functions that expect complex numbers also accept real ones. Throws `index_error` for an axis out of range;
/// `value_error` for a repeated axis, a length below 1 or an unknown norm; `dtype_error` for dtypes without transforms.
namespace varve::fft {

namespace detail {
/// Returns the factor that scales a transform of n elements.
inline double scale(char const* op, std::string_view norm, extent n, bool inverse) {
  double const size = static_cast<double>(n.number());
  if (norm == "ortho") return 1 / std::sqrt(size);
  if (norm != "backward" && norm != "forward")
    refuse::argument_is_invalid(op, "norm is \"backward\", \"ortho\" or \"forward\"");
  return (norm == "backward") == inverse ? 1 / size : 1.0;
}
template <class T>
T scaled(T const& x, double s) {
  return s == 1 ? x : T(mul(x, s));
}
/// Converts integers and bool to float32, and refuses compact dtypes.
template <class T>
T floating(char const* op, T const& x) {
  if (!has_derivatives(x.dtype())) return to(x, default_dtype);
  if (is_compact(x.dtype())) refuse::dtype_is_not_supported(op, name(x.dtype()));
  return x;
}
template <class T>
T complex_of(char const* op, T const& x) {
  T const f = floating(op, x);
  return to(f, complex_type(f.dtype()));
}
inline int axis_of(char const* op, dims const& sizes, extent axis) {
  if (sizes.n == 0)
    refuse::with<index_error>((std::string("varve: ") + op + ": a value of rank 0 has no axis").c_str());
  return wrap_axis(axis, sizes.n);
}
/// Truncates an axis to a length or pads it with zeros.
template <class T>
T of_length(char const* op, T const& x, int axis, extent n) {
  if (n < 1) refuse::argument_is_invalid(op, "the length must be at least 1");
  extent const have = x.sizes()[axis];
  if (n == have) return x;
  if (n < have) return slice(x, dims{axis}, 0, n);
  dims whole = x.sizes();
  whole[axis] = n;
  return slice_backward(x, whole, dims{axis, 0, have, 1});
}
template <class T>
T along(char const* op, T const& z, std::optional<extent> n, int axis, std::string_view norm, bool inverse) {
  extent const length = n.value_or(z.sizes()[axis]);
  T const x = of_length(op, z, axis, length);
  return scaled(T(fft_c2c(x, axis, inverse)), scale(op, norm, length, inverse));
}
/// Returns the first half of the spectrum of real numbers; the other half is its conjugate.
template <class T>
T real_along(char const* op, T const& x, std::optional<extent> n, int axis, std::string_view norm, bool inverse) {
  T const f = floating(op, x);
  if (is_complex(f.dtype()))
    refuse::dtype_is_not_supported((std::string(op) + " (real numbers expected)").c_str(), name(f.dtype()));
  T const y = along(op, T(to(f, complex_type(f.dtype()))), n, axis, norm, inverse);
  return slice(y, dims{axis}, 0, y.sizes()[axis] / 2 + 1);
}
/// Returns real numbers from the first half of their spectrum. The imaginary part of the first element is ignored, and
/// for an even length also that of the last one: they would make the result complex.
template <class T>
T to_real_along(char const* op, T const& x, std::optional<extent> n, int axis, std::string_view norm, bool inverse) {
  T const z = complex_of(op, x);
  extent const length = n.value_or(2 * (z.sizes()[axis] - 1));
  if (length < 1) refuse::argument_is_invalid(op, "the length must be at least 1");
  extent const half = length / 2 + 1;
  T const first = of_length(op, z, axis, half);
  extent const rest = length - half; // the remaining elements are the conjugates of elements rest, ..., 1
  T const whole =
      rest < 1 ? slice(first, dims{axis}, 0, length)
               : cat(std::vector<T>{first, conj(T(flip(T(slice(first, dims{axis}, 1, rest + 1)), dims{axis})))}, axis);
  return scaled(real_part(T(fft_c2c(whole, axis, inverse))), scale(op, norm, length, inverse));
}
/// Axes of a transform and the lengths along them; a length that is not given is the size of the axis.
struct many_axes {
  dims axes, lengths;
};
inline many_axes axes_of(char const* op, dims const& sizes, std::optional<dims> const& s,
                         std::optional<dims> const& axes) {
  many_axes r;
  if (axes) {
    for (extent a : *axes) r.axes.push_back(axis_of(op, sizes, a));
  } else {
    int const n = s ? s->n : sizes.n;
    if (n > sizes.n) refuse::argument_is_invalid(op, "there are more lengths than axes");
    for (int k = sizes.n - n; k < sizes.n; ++k) r.axes.push_back(k);
  }
  if (s && s->n != r.axes.n) refuse::argument_is_invalid(op, "there must be a length for each axis");
  for (int k = 0; k < r.axes.n; ++k) {
    for (int j = 0; j < k; ++j)
      if (r.axes[j] == r.axes[k]) refuse::argument_is_invalid(op, "an axis is named twice");
    bool const given = s && (*s)[k] != -1;
    r.lengths.push_back(given ? (*s)[k] : sizes[static_cast<int>(r.axes[k].number())]);
  }
  return r;
}
inline int axis_at(many_axes const& m, int k) { return static_cast<int>(m.axes[k].number()); }
/// Transforms all but the last of several axes.
template <class T>
T along_first(char const* op, T z, many_axes const& m, std::string_view norm, bool inverse) {
  for (int k = 0; k + 1 < m.axes.n; ++k) z = along(op, z, m.lengths[k], axis_at(m, k), norm, inverse);
  return z;
}
template <class T>
T along_all(char const* op, T const& x, std::optional<dims> const& s, std::optional<dims> const& axes,
            std::string_view norm, bool inverse) {
  many_axes const m = axes_of(op, x.sizes(), s, axes);
  T z = complex_of(op, x);
  if (m.axes.n == 0) return z;
  int const last = m.axes.n - 1;
  return along(op, along_first(op, z, m, norm, inverse), m.lengths[last], axis_at(m, last), norm, inverse);
}
inline void needs_axes(char const* op, many_axes const& m) {
  if (m.axes.n == 0) refuse::argument_is_invalid(op, "at least one axis is needed");
}
/// Transforms the last axis of real numbers, then the others.
template <class T>
T real_along_all(char const* op, T const& x, std::optional<dims> const& s, std::optional<dims> const& axes,
                 std::string_view norm, bool inverse) {
  many_axes const m = axes_of(op, x.sizes(), s, axes);
  needs_axes(op, m);
  int const last = m.axes.n - 1;
  return along_first(op, real_along(op, x, m.lengths[last], axis_at(m, last), norm, inverse), m, norm, inverse);
}
/// Transforms the other axes, then the last one, which becomes real.
template <class T>
T to_real_along_all(char const* op, T const& x, std::optional<dims> const& s, std::optional<dims> const& axes,
                    std::string_view norm, bool inverse) {
  many_axes const m = axes_of(op, x.sizes(), s, axes);
  needs_axes(op, m);
  int const last = m.axes.n - 1;
  bool const given = s && (*s)[last] != -1;
  return to_real_along(op, along_first(op, complex_of(op, x), m, norm, inverse),
                       given ? std::optional<extent>(m.lengths[last]) : std::nullopt, axis_at(m, last), norm, inverse);
}
inline dims const last_two{-2, -1};
} // namespace detail

/// Returns the Fourier transform along one axis (`torch.fft.fft`).
template <std::same_as<tensor> T>
T fft(T const& x, std::optional<extent> n = {}, extent dim = -1, std::string_view norm = "backward") {
  int const axis = detail::axis_of("fft", x.sizes(), dim);
  return detail::along("fft", detail::complex_of("fft", x), n, axis, norm, false);
}
/// Returns the inverse Fourier transform along one axis (`torch.fft.ifft`).
template <std::same_as<tensor> T>
T ifft(T const& x, std::optional<extent> n = {}, extent dim = -1, std::string_view norm = "backward") {
  int const axis = detail::axis_of("ifft", x.sizes(), dim);
  return detail::along("ifft", detail::complex_of("ifft", x), n, axis, norm, true);
}
/// Returns the first n / 2 + 1 elements of the transform of real numbers (`torch.fft.rfft`). The others are their
/// conjugates.
template <std::same_as<tensor> T>
T rfft(T const& x, std::optional<extent> n = {}, extent dim = -1, std::string_view norm = "backward") {
  return detail::real_along("rfft", x, n, detail::axis_of("rfft", x.sizes(), dim), norm, false);
}
/// Returns the inverse of `rfft`: `n` real numbers, by default 2 (m - 1) for m elements (`torch.fft.irfft`).
template <std::same_as<tensor> T>
T irfft(T const& x, std::optional<extent> n = {}, extent dim = -1, std::string_view norm = "backward") {
  return detail::to_real_along("irfft", x, n, detail::axis_of("irfft", x.sizes(), dim), norm, true);
}
/// Returns the real transform of numbers of which only the first half is given and the others are the conjugates
/// (`torch.fft.hfft`).
template <std::same_as<tensor> T>
T hfft(T const& x, std::optional<extent> n = {}, extent dim = -1, std::string_view norm = "backward") {
  return detail::to_real_along("hfft", x, n, detail::axis_of("hfft", x.sizes(), dim), norm, false);
}
/// Returns the inverse of `hfft` (`torch.fft.ihfft`).
template <std::same_as<tensor> T>
T ihfft(T const& x, std::optional<extent> n = {}, extent dim = -1, std::string_view norm = "backward") {
  return detail::real_along("ihfft", x, n, detail::axis_of("ihfft", x.sizes(), dim), norm, true);
}

/// Returns the Fourier transform along several axes (`torch.fft.fftn`). Default: all axes or, if only lengths are
/// given, the last ones.
template <std::same_as<tensor> T>
T fftn(T const& x, std::optional<dims> const& s = {}, std::optional<dims> const& dim = {},
       std::string_view norm = "backward") {
  return detail::along_all("fftn", x, s, dim, norm, false);
}
template <std::same_as<tensor> T>
T ifftn(T const& x, std::optional<dims> const& s = {}, std::optional<dims> const& dim = {},
        std::string_view norm = "backward") {
  return detail::along_all("ifftn", x, s, dim, norm, true);
}
/// Returns the Fourier transform of real numbers along several axes, with one half of the last axis
/// (`torch.fft.rfftn`).
template <std::same_as<tensor> T>
T rfftn(T const& x, std::optional<dims> const& s = {}, std::optional<dims> const& dim = {},
        std::string_view norm = "backward") {
  return detail::real_along_all("rfftn", x, s, dim, norm, false);
}
template <std::same_as<tensor> T>
T irfftn(T const& x, std::optional<dims> const& s = {}, std::optional<dims> const& dim = {},
         std::string_view norm = "backward") {
  return detail::to_real_along_all("irfftn", x, s, dim, norm, true);
}
template <std::same_as<tensor> T>
T hfftn(T const& x, std::optional<dims> const& s = {}, std::optional<dims> const& dim = {},
        std::string_view norm = "backward") {
  return detail::to_real_along_all("hfftn", x, s, dim, norm, false);
}
template <std::same_as<tensor> T>
T ihfftn(T const& x, std::optional<dims> const& s = {}, std::optional<dims> const& dim = {},
         std::string_view norm = "backward") {
  return detail::real_along_all("ihfftn", x, s, dim, norm, true);
}
/// Returns the Fourier transform along two axes, by default the last ones (`torch.fft.fft2`).
template <std::same_as<tensor> T>
T fft2(T const& x, std::optional<dims> const& s = {}, dims const& dim = detail::last_two,
       std::string_view norm = "backward") {
  return detail::along_all("fft2", x, s, dim, norm, false);
}
template <std::same_as<tensor> T>
T ifft2(T const& x, std::optional<dims> const& s = {}, dims const& dim = detail::last_two,
        std::string_view norm = "backward") {
  return detail::along_all("ifft2", x, s, dim, norm, true);
}
template <std::same_as<tensor> T>
T rfft2(T const& x, std::optional<dims> const& s = {}, dims const& dim = detail::last_two,
        std::string_view norm = "backward") {
  return detail::real_along_all("rfft2", x, s, dim, norm, false);
}
template <std::same_as<tensor> T>
T irfft2(T const& x, std::optional<dims> const& s = {}, dims const& dim = detail::last_two,
         std::string_view norm = "backward") {
  return detail::to_real_along_all("irfft2", x, s, dim, norm, true);
}
template <std::same_as<tensor> T>
T hfft2(T const& x, std::optional<dims> const& s = {}, dims const& dim = detail::last_two,
        std::string_view norm = "backward") {
  return detail::to_real_along_all("hfft2", x, s, dim, norm, false);
}
template <std::same_as<tensor> T>
T ihfft2(T const& x, std::optional<dims> const& s = {}, dims const& dim = detail::last_two,
         std::string_view norm = "backward") {
  return detail::real_along_all("ihfft2", x, s, dim, norm, true);
}

/// Returns the frequencies of the elements of `fft` for n samples at distance d (`torch.fft.fftfreq`): 0, 1, ..., and
/// from the middle on the negative ones up to -1, each divided by n d.
template <class T = tensor>
T fftfreq(index_t n, double d = 1, dtype type = get_default_dtype()) {
  if (n < 1) refuse::argument_is_invalid("fftfreq", "there is at least one sample");
  if (!is_floating(type)) refuse::dtype_is_not_supported("fftfreq", name(type));
  T const k = arange(n, dtype::float64);
  T const wrapped = sub(k, mul(to(T(ge(k, static_cast<double>((n + 1) / 2))), dtype::float64), static_cast<double>(n)));
  return to(T(mul(wrapped, 1 / (static_cast<double>(n) * d))), type);
}
/// Returns the frequencies of the elements of `rfft`: the non-negative ones up to n / 2 (`torch.fft.rfftfreq`).
template <class T = tensor>
T rfftfreq(index_t n, double d = 1, dtype type = get_default_dtype()) {
  if (n < 1) refuse::argument_is_invalid("rfftfreq", "there is at least one sample");
  if (!is_floating(type)) refuse::dtype_is_not_supported("rfftfreq", name(type));
  return to(T(mul(T(arange(n / 2 + 1, dtype::float64)), 1 / (static_cast<double>(n) * d))), type);
}
namespace detail {
template <class T>
T shifted(char const* op, T const& x, std::optional<dims> const& dim, bool back) {
  many_axes const m = axes_of(op, x.sizes(), {}, dim);
  if (m.axes.n == 0) return x;
  dims shifts;
  for (extent const& n : m.lengths) shifts.push_back(back ? n - n / 2 : n / 2);
  return roll(x, shifts, m.axes);
}
} // namespace detail
/// Moves frequency 0 to the middle of axes, by default of all (`torch.fft.fftshift`).
template <std::same_as<tensor> T>
T fftshift(T const& x, std::optional<dims> const& dim = {}) {
  return detail::shifted("fftshift", x, dim, false);
}
/// Moves frequency 0 from the middle of axes back to the front (`torch.fft.ifftshift`).
template <std::same_as<tensor> T>
T ifftshift(T const& x, std::optional<dims> const& dim = {}) {
  return detail::shifted("ifftshift", x, dim, true);
}

} // namespace varve::fft
