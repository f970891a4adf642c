// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/attributes.hpp>
#include <varve/kernel/arithmetic.hpp>

/// @file
/// Sizes that all convolution kernels use, and a convolution by plain loops. The loops serve constant expressions,
/// integers, and convolutions with little to multiply.
namespace varve::kernel {

/// Sizes of a convolution over contiguous memory. Missing spatial dimensions are added in front with size 1, so that
/// there are three.
///
/// One operand or result of a convolution is the *field*. The kernel is positioned on it at *places*: tap t at place i
/// meets element `i * stride + t * dilation - padding` of the field. A convolution reads the field and returns an
/// element for each place. A transposed one reads the places and adds into the field. In both cases the weight has the
/// shape [groups * place_channels, field_channels, taps...].
struct convolution_sizes {
  index_t batch = 0, groups = 0, place_channels = 0, field_channels = 0; // channels of one group
  index_t place[3]{1, 1, 1}, field[3]{1, 1, 1}, tap[3]{1, 1, 1}, stride[3]{1, 1, 1}, padding[3]{}, dilation[3]{1, 1, 1};
  bool transposed = false;

  /// Reads the sizes from the operator's attributes {stride}, {padding}, {dilation..., transposed, groups,
  /// output_padding...} and the shapes.
  constexpr convolution_sizes(attributes const& at, dims const& input, dims const& weight, dims const& output) {
    auto const number = [&](int fact, int k) { return at[fact][k].number(); };
    int const n = at[0].n;
    transposed = number(2, n) != 0;
    groups = number(2, n + 1);
    dims const &places = transposed ? input : output, &whole = transposed ? output : input;
    batch = input[0].number();
    place_channels = groups > 0 ? weight[0].number() / groups : 0;
    field_channels = weight[1].number();
    for (int k = 0, d = 3 - n; k < n; ++k, ++d)
      place[d] = places[k + 2].number(), field[d] = whole[k + 2].number(), tap[d] = weight[k + 2].number(),
      stride[d] = number(0, k), padding[d] = number(1, k), dilation[d] = number(2, k);
  }
  constexpr index_t places() const { return place[0] * place[1] * place[2]; }
  constexpr index_t field_size() const { return field[0] * field[1] * field[2]; }
  constexpr index_t taps() const { return tap[0] * tap[1] * tap[2]; }
  /// Returns the index in the field, along dimension `d`, that tap `t` meets at place 0.
  constexpr index_t offset(int d, index_t t) const { return t * dilation[d] - padding[d]; }
  /// Returns the first place, along dimension `d`, at which an element is inside of the field, if `at` is the element's
  /// index at place 0. `last` returns the end of these places (one past the last one).
  constexpr index_t first(int d, index_t at) const { return at < 0 ? (stride[d] - 1 - at) / stride[d] : 0; }
  constexpr index_t last(int d, index_t at) const {
    index_t const n = field[d] > at ? (field[d] - 1 - at) / stride[d] + 1 : 0;
    return n < place[d] ? n : place[d];
  }
};

namespace detail {
/// Calls `f(place, field, count)` for each row of places at which tap (t0, t1, t2) meets the field. `place` and `field`
/// are the offsets of the first of `count` elements in their planes.
template <class F>
constexpr void for_each_met_row(convolution_sizes const& s, index_t t0, index_t t1, index_t t2, F const& f) {
  index_t const o0 = s.offset(0, t0), o1 = s.offset(1, t1), o2 = s.offset(2, t2), from = s.first(2, o2),
                count = s.last(2, o2) - from;
  if (count <= 0) return;
  for (index_t i = s.first(0, o0), end0 = s.last(0, o0); i < end0; ++i)
    for (index_t j = s.first(1, o1), end1 = s.last(1, o1); j < end1; ++j)
      f((i * s.place[1] + j) * s.place[2] + from,
        ((i * s.stride[0] + o0) * s.field[1] + j * s.stride[1] + o1) * s.field[2] + from * s.stride[2] + o2, count);
}
/// Computes to[i * to_step] += v * from[i * from_step].
template <class T>
constexpr void add_scaled(T* to, index_t to_step, T v, T const* from, index_t from_step, index_t n) {
  index_t i = 0;
  if constexpr (floating_lane<T>)
    if (!std::is_constant_evaluated() && to_step == 1 && from_step == 1) {
      constexpr index_t L = lanes<T>;
      for (batch<T> const x(v); i + L <= n; i += L)
        kernel::store(to + i, kernel::fma<T>(x, kernel::load(from + i), kernel::load(to + i)));
    }
  for (; i < n; ++i) to[i * to_step] = kernel::add(to[i * to_step], kernel::mul(v, from[i * from_step]));
}
} // namespace detail

/// Computes any convolution by plain loops. Integers wrap around. Memory is contiguous and must not overlap.
template <class T>
constexpr void convolve_directly(convolution_sizes const& s, T const* input, T const* weight, T* output) {
  index_t const places = s.places(), field = s.field_size(), taps = s.taps();
  index_t const total = s.batch * s.groups * (s.transposed ? s.field_channels * field : s.place_channels * places);
  for (index_t k = 0; k < total; ++k) output[k] = T(0);
  for (index_t n = 0; n < s.batch; ++n)
    for (index_t p = 0; p < s.groups * s.place_channels; ++p)
      for (index_t c = 0; c < s.field_channels; ++c) {
        T const* w = weight + (p * s.field_channels + c) * taps;
        index_t const at_place = (n * s.groups * s.place_channels + p) * places,
                      at_field = ((n * s.groups + p / s.place_channels) * s.field_channels + c) * field;
        for (index_t t0 = 0; t0 < s.tap[0]; ++t0)
          for (index_t t1 = 0; t1 < s.tap[1]; ++t1)
            for (index_t t2 = 0; t2 < s.tap[2]; ++t2) {
              T const v = *w++;
              detail::for_each_met_row(s, t0, t1, t2, [&](index_t place, index_t in_field, index_t count) {
                if (s.transposed)
                  detail::add_scaled(output + at_field + in_field, s.stride[2], v, input + at_place + place, 1, count);
                else
                  detail::add_scaled(output + at_place + place, 1, v, input + at_field + in_field, s.stride[2], count);
              });
            }
      }
}

} // namespace varve::kernel
