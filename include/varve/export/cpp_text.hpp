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

/// The C++ type of a dtype.
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
/// A number as a literal of a dtype, which is read back to the bit.
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

/// How the call of an elementwise operator is written: `$0`, `$1`, `$2` are its operands, `$T` the type that it
/// computes in.
struct operator_text {
  std::string_view name, text;
};
/// Arithmetic that floating types and batches have as C++ operators (of int64 not the product, which does not wrap
/// around in every library).
inline constexpr operator_text infix[] = {
    {"add", "$0 + $1"}, {"sub", "$0 - $1"}, {"mul", "$0 * $1"}, {"div", "$0 / $1"}, {"neg", "-$0"}};
/// Operators that are the function of varve/kernel of the same name, which emitted code need not look up in the rules
/// of the operator: `varve/kernel/math.hpp` is read faster.
inline constexpr std::string_view functions[] = {
    "add",   "sub",     "mul", "neg",   "abs",        "sign",    "lt",      "le",        "gt",
    "ge",    "eq",      "ne",  "isnan", "where",      "maximum", "minimum", "floor",     "ceil",
    "trunc", "round",   "exp", "expm1", "log",        "log1p",   "sin",     "cos",       "tan",
    "tanh",  "sigmoid", "erf", "sqrt",  "reciprocal", "pow",     "fmod",    "remainder", "floor_divide"};
/// Others.
inline constexpr operator_text others[] = {
    {"relu", "kernel::maximum($0, $T(0))"},
    {"rsqrt", "kernel::reciprocal(kernel::sqrt($0))"},
    {"log1p_exp", "kernel::maximum($0, $T(0)) + kernel::log1p(kernel::exp(-kernel::abs($0)))"},
    {"isfinite", "kernel::eq($0 - $0, $T(0))"}};

/// The text of an elementwise operator of varve on values of dtype `t`, or on batches: where nothing shorter is known,
/// the kernel of its rules. Integers go through the kernels, in which they wrap.
VARVE_COLD inline std::string text_of_operator(std::string_view name, dtype t, bool batches, int operands) {
  if (is_floating(t) || (batches && !(t == dtype::int64 && name == "mul")))
    for (operator_text const& o : infix)
      if (o.name == name) return std::string(o.text);
  for (operator_text const& o : others)
    if (o.name == name) return std::string(o.text);
  std::string s;
  for (std::string_view f : functions)
    if (f == name) s = "kernel::" + std::string(f) + "(";
  constexpr std::string_view family = "special_"; // which tags have not in their names
  if (s.empty())
    s = "varve::rules<varve::" + std::string(name.substr(name.substr(0, family.size()) == family ? family.size() : 0)) +
        "_t>::kernel(";
  for (int k = 0; k < operands; ++k) s += (k ? ", $" : "$") + std::to_string(k);
  return s + ")";
}

/// Replaces `$k` by operand k, and `$T` by a type. An operand that is no name is put in parentheses.
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
