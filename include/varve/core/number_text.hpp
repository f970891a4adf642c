// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>

#include <string>
#include <string_view>

/// @file
/// Floating-point numbers as text and back. A program may set a locale with a decimal comma, as Qt and GTK do. This
/// library always reads and writes a decimal point.
namespace varve::detail {

/// Returns x with at most `digits` significant digits, as "%.*g" prints it in the C locale.
std::string number_text(double x, int digits);
/// Returns x with the fewest significant digits, but at least 6, that are read back as x. Whole numbers below 10^15 in
/// magnitude are written with all their digits.
std::string number_text(double x);
/// Returns x with `decimals` digits after the point, as "%.*f" prints it in the C locale.
std::string fixed_text(double x, int decimals);
/// Returns x in hexadecimal, as "%a" prints it in the C locale. The text is exact.
std::string hex_text(double x);
/// Reads a whole text as a number: decimal, hexadecimal after "0x", "inf" or "nan", each with or without a sign.
/// Numbers beyond the range of double become infinite, and those below its smallest become 0. Returns false for other
/// texts.
bool read_number(std::string_view text, double& x);
/// Reads a number by `strtod`, which expects the decimal point of the locale. Used where `from_chars` does not suffice.
bool read_number_by_locale(std::string text, double& x);

} // namespace varve::detail

#if VARVE_DEFINES
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdlib>

namespace varve::detail {
VARVE_COLD VARVE_LIBRARY std::string number_text(double x, int digits) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, x, std::chars_format::general, digits).ptr};
}
VARVE_COLD VARVE_LIBRARY std::string number_text(double x) {
  if (x > -1e15 && x < 1e15 && x == static_cast<double>(static_cast<long long>(x)) && !(x == 0 && std::signbit(x)))
    return std::to_string(static_cast<long long>(x));
  std::string text;
  double back = 0;
  for (int digits = 6; digits <= 17; ++digits)
    if (text = number_text(x, digits); x != x || (read_number(text, back) && back == x)) break;
  return text;
}
VARVE_COLD VARVE_LIBRARY std::string fixed_text(double x, int decimals) {
  char text[400]; // the greatest double has 309 digits before the point
  auto const r = std::to_chars(text, text + sizeof text, x, std::chars_format::fixed, decimals);
  return r.ec == std::errc() ? std::string(text, r.ptr) : number_text(x);
}
VARVE_COLD VARVE_LIBRARY std::string hex_text(double x) {
  char text[64];
  std::string r(text, std::to_chars(text, text + sizeof text, x, std::chars_format::hex).ptr);
  return std::isfinite(x) ? r.insert(r[0] == '-', "0x") : r;
}

VARVE_COLD VARVE_LIBRARY bool read_number_by_locale(std::string text, double& x) {
  if (std::size_t const point = text.find('.'); point != std::string::npos)
    text.replace(point, 1, std::localeconv()->decimal_point);
  char* end = nullptr;
  x = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size();
}
/// Reads a number without a sign by `from_chars`, if the standard library has it for floating-point numbers (libc++:
/// from version 20). The pointer type is a template parameter, so that the `requires` is evaluated on instantiation.
template <class P>
bool read_number_without_sign(P first, P last, double& x) {
  if constexpr (requires { std::from_chars(first, last, x); }) {
    bool const hexadecimal =
        last - first > 2 && first[0] == '0' && (first[1] == 'x' || first[1] == 'X') && first[2] != '-';
    auto const r = hexadecimal ? std::from_chars(first + 2, last, x, std::chars_format::hex)
                               : std::from_chars(first, last, x, std::chars_format::general);
    if (r.ec == std::errc() || r.ptr != last) return r.ec == std::errc() && r.ptr == last;
  }
  return read_number_by_locale(std::string(first, last), x); // strtod distinguishes too great from too small
}
VARVE_LIBRARY bool read_number(std::string_view text, double& x) {
  bool const negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
  // no second sign, no blanks, which strtod would skip, and no zero bytes, at which it would stop
  if (text.empty() || text.find_first_not_of("0123456789.abcdefinptxyABCDEFINPTXY+-") != text.npos) return false;
  if (text[0] == '+' || text[0] == '-') return false;
  if (!read_number_without_sign(text.data(), text.data() + text.size(), x)) return false;
  if (negative) x = -x;
  return true;
}
} // namespace varve::detail
#endif
