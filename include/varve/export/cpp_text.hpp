// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/number_text.hpp>
#include <varve/graph/print.hpp>
#include <varve/plan/program.hpp>

#include <limits>
#include <string>
#include <string_view>

/// @file
/// Types, numbers and operators as C++ text.
namespace varve::cpp {

/// Returns the C++ type of a dtype.
constexpr char const* type_text(dtype t) {
  switch (t) {
  case dtype::bool_:
    return "bool";
  case dtype::uint8:
    return "std::uint8_t";
  case dtype::int32:
    return "std::int32_t";
  case dtype::int64:
    return "std::int64_t";
  case dtype::float32:
    return "float";
  case dtype::float64:
    return "double";
  default:
    refuse::dtype_is_not_supported("emit_cpp", name(t));
  }
}
/// Returns a number as a literal of a dtype that is parsed back to the same bits.
VARVE_COLD inline std::string literal(dtype t, double x) {
  if (t == dtype::bool_) return x != 0 ? "true" : "false";
  if (!is_floating(t)) return varve::detail::number_text(x);
  std::string const type = type_text(t);
  if (x != x) return "std::numeric_limits<" + type + ">::quiet_NaN()";
  if (x - x != 0) return (x < 0 ? "-" : "") + ("std::numeric_limits<" + type + ">::infinity()");
  std::string s =
      x == 0 && 1 / x < 0
          ? "-0"
          : varve::detail::number_text(t == dtype::float32 ? static_cast<double>(static_cast<float>(x)) : x);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return t == dtype::float32 ? s + "f" : s;
}

/// Returns the C++ text of an elementwise varve operator on values of dtype `t`, or on batches: the text of its rules,
/// else a call of their kernel. Integers use kernels, which wrap around, as do products of int64 in registers.
VARVE_COLD inline std::string text_of_operator(op_handle const& op, dtype t, bool batches) {
  bool const wraps = !is_floating(t) && (!batches || (t == dtype::int64 && op.planned_as == operator_class::mul));
  if (op.cpp.infix && !wraps) return op.cpp.infix;
  if (op.cpp.text) return op.cpp.text;
  constexpr std::string_view family = "special_"; // a prefix that tags do not have
  std::string_view name = op.name;
  if (name.substr(0, family.size()) == family) name.remove_prefix(family.size());
  std::string s = "varve::rules<varve::" + std::string(name) + "_t>::kernel(";
  for (int k = 0; k < op.arity; ++k) s += (k ? ", $" : "$") + std::to_string(k);
  return s + ")";
}

/// Replaces `$k` by operand k, and `$T` by a type.
template <class Operand>
VARVE_COLD std::string filled_in(std::string const& text, std::string const& type, Operand const& operand) {
  std::string s;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] != '$') s += text[k];
    else if (text[++k] == 'T') s += type;
    else s += operand(text[k] - '0');
  }
  return s;
}

/// Text that is written line by line.
class writer {
public:
  std::string text;
  void line(std::string const& s) {
    text += s.empty() ? "\n" : std::string(static_cast<std::size_t>(depth_) * 2, ' ') + s + "\n";
  }
  void open(std::string const& s) { line(s), ++depth_; }
  void indent() { ++depth_; }
  void close(std::string const& s = "}") { --depth_, line(s); }

private:
  int depth_ = 0;
};

} // namespace varve::cpp

#pragma GCC diagnostic pop
