// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/call/call.hpp>

namespace varve::by_name {
/// Operators of whole numbers, roundings, angles and special functions, by name.
std::span<call_row const> special_functions();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/call/adapt.hpp>
#include <varve/op/all.hpp>
#include <varve/special/angles.hpp>
#include <varve/special/integers.hpp>
#include <varve/special/rounding.hpp>

namespace varve::by_name {
inline call_family const special_family{&special_functions};

/// The quotient, rounded as a text says.
inline tensor quotient(tensor const& x, tensor const& y, std::optional<std::string> const& mode) {
  if (!mode) return div(x, y);
  if (*mode == "floor") return floor_divide(x, y);
  if (*mode == "trunc") return trunc_divide(x, y);
  refuse::argument_is_invalid("div", "the rounding mode is None, 'trunc' or 'floor'");
}

VARVE_LIBRARY std::span<call_row const> special_functions() {
  using enum call_forms;
  static call_row const rows[] = {
      {"bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", of_two<bitwise_and_t>, both, "__and__"},
      {"bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor", of_two<bitwise_and_t>, both, "__and__"},
      {"bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", of_two<bitwise_and_t>},
      {"__rand__.Tensor(Tensor self, Tensor other) -> Tensor", of_two_turned<bitwise_and_t>},
      {"__rand__.Scalar(Tensor self, Scalar other) -> Tensor", of_two_turned<bitwise_and_t>},
      {"bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", of_two<bitwise_or_t>, both, "__or__"},
      {"bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor", of_two<bitwise_or_t>, both, "__or__"},
      {"bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", of_two<bitwise_or_t>},
      {"__ror__.Tensor(Tensor self, Tensor other) -> Tensor", of_two_turned<bitwise_or_t>},
      {"__ror__.Scalar(Tensor self, Scalar other) -> Tensor", of_two_turned<bitwise_or_t>},
      {"bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", of_two<bitwise_xor_t>, both, "__xor__"},
      {"bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor", of_two<bitwise_xor_t>, both, "__xor__"},
      {"bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", of_two<bitwise_xor_t>},
      {"__rxor__.Tensor(Tensor self, Tensor other) -> Tensor", of_two_turned<bitwise_xor_t>},
      {"__rxor__.Scalar(Tensor self, Scalar other) -> Tensor", of_two_turned<bitwise_xor_t>},
      {"bitwise_not(Tensor self) -> Tensor", of_one<bitwise_not_t>, both},
      {"bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", of_two<bitwise_left_shift_t>, both,
       "__lshift__"},
      {"bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", of_two<bitwise_left_shift_t>, both,
       "__lshift__"},
      {"bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", of_two<bitwise_left_shift_t>},
      {"bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", of_two<bitwise_right_shift_t>, both,
       "__rshift__"},
      {"bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", of_two<bitwise_right_shift_t>, both,
       "__rshift__"},
      {"bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", of_two<bitwise_right_shift_t>},
      {"gcd(Tensor self, Tensor other) -> Tensor", of_two<gcd_t>, both},
      {"lcm(Tensor self, Tensor other) -> Tensor", of_two<lcm_t>, both},

      {"floor(Tensor self) -> Tensor", of_one<floor_t>, both},
      {"ceil(Tensor self) -> Tensor", of_one<ceil_t>, both},
      {"trunc(Tensor self) -> Tensor", of_one<trunc_t>, both, "fix"},
      {"frac(Tensor self) -> Tensor", of_one<frac_t>, both},
      {"round.decimals(Tensor self, *, int decimals=0) -> Tensor",
       +[](tensor const& x, index_t d) -> tensor { return round(x, static_cast<int>(d)); }, both,
       "special_round special.round"},
      {"floor_divide(Tensor self, Tensor other) -> Tensor", of_two<floor_divide_t>, both, "__floordiv__"},
      {"floor_divide.Scalar(Tensor self, Scalar other) -> Tensor", of_two<floor_divide_t>, in_place, "__floordiv__"},
      {"div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", quotient, both, "divide"},
      {"div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", quotient, in_place, "divide"},
      {"fmod.Tensor(Tensor self, Tensor other) -> Tensor", of_two<fmod_t>, both},
      {"fmod.Scalar(Tensor self, Scalar other) -> Tensor", of_two<fmod_t>, both},
      {"remainder.Tensor(Tensor self, Tensor other) -> Tensor", of_two<remainder_t>, both, "__mod__"},
      {"remainder.Scalar(Tensor self, Scalar other) -> Tensor", of_two<remainder_t>, both, "__mod__"},
      {"remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", of_two<remainder_t>},
      {"__rmod__(Tensor self, Tensor other) -> Tensor", of_two_turned<remainder_t>},
      {"__rmod__.Scalar(Tensor self, Scalar other) -> Tensor", of_two_turned<remainder_t>},
      {"nextafter(Tensor self, Tensor other) -> Tensor", of_two<nextafter_t>, both},
      {"frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
       +[](tensor const& x) -> std::tuple<tensor, tensor> { return frexp(x); }},

      {"tan(Tensor self) -> Tensor", of_one<tan_t>, both},
      {"asin(Tensor self) -> Tensor", of_one<asin_t>, both, "arcsin"},
      {"acos(Tensor self) -> Tensor", of_one<acos_t>, both, "arccos"},
      {"atan(Tensor self) -> Tensor", of_one<atan_t>, both, "arctan"},
      {"atan2(Tensor self, Tensor other) -> Tensor", of_two<atan2_t>, both, "arctan2"},
      {"sinh(Tensor self) -> Tensor", of_one<sinh_t>, both},
      {"asinh(Tensor self) -> Tensor", of_one<asinh_t>, both, "arcsinh"},
      {"atanh(Tensor self) -> Tensor", of_one<atanh_t>, both, "arctanh"},
  };
  return rows;
}
} // namespace varve::by_name
#endif
