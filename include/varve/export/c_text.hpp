// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/number_text.hpp>
#include <varve/export/plan_text.hpp>
#include <varve/kernel/convert.hpp>

#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// Types, numbers and operators as C99 text. An operator is written by C's own operators, by a function of `math.h`, or
/// by a short function that the text then contains once.
namespace varve::c99 {
using cpp::text;

/// Returns the C type of a dtype.
constexpr char const* type_text(dtype t) {
  switch (t) {
  case dtype::bool_:
    return "bool";
  case dtype::uint8:
    return "uint8_t";
  case dtype::int32:
    return "int32_t";
  case dtype::int64:
    return "int64_t";
  case dtype::float32:
    return "float";
  case dtype::float64:
    return "double";
  default:
    refuse::dtype_is_not_supported("emit_c", name(t));
  }
}
/// Returns the end of the names of functions for a dtype.
constexpr char const* ending(dtype t) {
  return t == dtype::bool_     ? "b"
         : t == dtype::uint8   ? "u8"
         : t == dtype::int32   ? "i32"
         : t == dtype::int64   ? "i64"
         : t == dtype::float32 ? "f32"
                               : "f64";
}

/// How tightly the outermost operator of an expression binds; `choice` stands for all that bind less than a sum.
enum class binding : unsigned char { choice, sum, product, unary, atom };
struct expression {
  std::string text;
  binding binds = binding::atom;
};
/// Returns the text of an operand, in parentheses if its operator binds less than `least`.
inline std::string within(expression const& x, binding least) { return x.binds >= least ? x.text : "(" + x.text + ")"; }

/// Returns a number as a literal of a dtype that is read back as the same bits.
VARVE_COLD inline expression literal(dtype t, double x) {
  type_text(t);
  if (t == dtype::bool_) return {x != 0 ? "true" : "false"};
  if (!is_floating(t)) {
    std::int64_t const n = kernel::cast<std::int64_t>(x);
    if (n == INT64_MIN) return {"INT64_MIN"};
    if (t == dtype::int32 && n == INT32_MIN) return {"INT32_MIN"};
    return {std::to_string(n) + (n > INT32_MAX || n < INT32_MIN ? "LL" : ""), n < 0 ? binding::unary : binding::atom};
  }
  if (x != x) return {"NAN"};
  if (x - x != 0) return {x < 0 ? "-INFINITY" : "INFINITY", x < 0 ? binding::unary : binding::atom};
  std::string s =
      x == 0 && 1 / x < 0
          ? "-0"
          : varve::detail::number_text(t == dtype::float32 ? static_cast<double>(static_cast<float>(x)) : x);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return {t == dtype::float32 ? s + "f" : s, s[0] == '-' ? binding::unary : binding::atom};
}
/// Returns the value that the first element of a fold replaces.
VARVE_COLD inline expression neutral(fusion::sink_kind k, dtype t) {
  if (k == fusion::sink_kind::sum) return literal(t, 0);
  bool const least = k == fusion::sink_kind::greatest;
  if (is_floating(t)) return {least ? "-INFINITY" : "INFINITY", least ? binding::unary : binding::atom};
  if (t == dtype::bool_) return {least ? "false" : "true"};
  if (t == dtype::uint8) return {least ? "0" : "UINT8_MAX"};
  return {std::string(t == dtype::int32 ? "INT32_" : "INT64_") + (least ? "MIN" : "MAX")};
}

/// What a function returns instead of 0.
enum class fault : int { index = 1, steps = 2, division = 3, matrix = 4, sizes = 5 };

/// Writes operators, and collects the functions that C lacks. Names of these begin with `prefix`.
class language {
public:
  explicit language(std::string name) : prefix(std::move(name) + "_") {}
  /// The functions that the text needs beside `math.h`.
  std::string functions{};

  /// Returns x + y, x - y, x * y, x / y or -x. Integers wrap around; a sum of flags is their disjunction.
  expression arithmetic(operator_class what, dtype t, expression const& x, expression const& y) {
    char const* const sign = what == operator_class::add   ? " + "
                             : what == operator_class::mul ? " * "
                             : what == operator_class::div ? " / "
                                                           : " - ";
    bool const multiplies = what == operator_class::mul || what == operator_class::div;
    binding const own = multiplies ? binding::product : binding::sum,
                  right = multiplies ? binding::unary : binding::product;
    if (is_floating(t)) {
      if (what == operator_class::neg) return {"-" + within(x, binding::atom), binding::unary};
      return {within(x, own) + sign + within(y, right), own};
    }
    if (t == dtype::bool_)
      return {within(x, binding::atom) + (multiplies ? " && " : " || ") + within(y, binding::atom), binding::choice};
    std::string const type = type_text(t), unsigned_type = t == dtype::uint8 ? "" : "(u" + type + ")";
    if (what == operator_class::neg)
      return {"(" + type + ")(0" + (t == dtype::uint8 ? "" : "u") + " - " + unsigned_type + within(x, binding::unary) +
                  ")",
              binding::unary};
    return {"(" + type + ")(" + unsigned_type + within(x, binding::unary) + sign + unsigned_type +
                within(y, binding::unary) + ")",
            binding::unary};
  }
  /// Returns x converted to another dtype. Numbers beyond the range of an integer become its smallest one.
  expression cast(dtype to, dtype from, expression const& x) {
    if (to == from) return x;
    if (to == dtype::bool_) return {within(x, binding::sum) + " != 0", binding::choice};
    std::string const type = type_text(to);
    if (!is_floating(from) || is_floating(to)) return {"(" + type + ")" + within(x, binding::unary), binding::unary};
    std::string const bound = literal(from, to == dtype::int32 ? 0x1p31 : 0x1p63).text;
    return {function("cast", to, from, "const $T x",
                     std::string("return ") + (to == dtype::uint8 ? "(uint8_t)(int64_t)" : "($R)") + "(x >= -" + bound +
                         " && x < " + bound + " ? x : -" + bound + ");") +
            "(" + x.text + ")"};
  }
  /// Returns the function `name` of `varve/kernel` on operands of dtype `t`.
  expression call(std::string_view name, dtype t, std::vector<expression> const& x) {
    if (char const* const sign = comparison(name))
      return {within(x[0], binding::sum) + sign + within(x[1], binding::sum), binding::choice};
    if (name == "add") return arithmetic(operator_class::add, t, x[0], x[1]);
    if (name == "sub") return arithmetic(operator_class::sub, t, x[0], x[1]);
    if (name == "mul") return arithmetic(operator_class::mul, t, x[0], x[1]);
    if (name == "neg") return arithmetic(operator_class::neg, t, x[0], {});
    if (name == "reciprocal") return {"1 / " + within(x[0], binding::unary), binding::product};
    if (name == "where")
      return {within(x[0], binding::sum) + " ? " + within(x[1], binding::sum) + " : " + within(x[2], binding::sum),
              binding::choice};
    bool const is_whole = !is_floating(t), is_unsigned = t == dtype::uint8 || t == dtype::bool_;
    if (is_whole &&
        (name == "floor" || name == "ceil" || name == "trunc" || name == "round" || (name == "abs" && is_unsigned)))
      return x[0];
    std::string s = of_math(name, t);
    if (s.empty()) s = own_function(name, t);
    s += "(";
    for (std::size_t k = 0; k < x.size(); ++k) s += (k ? ", " : "") + x[k].text;
    return {s + (is_whole && divides(name) ? ", &status)" : ")")};
  }
  /// Writes a function for a dtype, unless the text has it, and returns its name. In its parameters and its body `$T`
  /// is the type, `$F` the end of functions of `math.h`.
  std::string own(std::string const& called, std::string const& result, dtype t, std::string const& parameters,
                  std::string const& body) {
    std::string const name = prefix + called + "_" + ending(t);
    if (functions.find(" " + name + "(") != std::string::npos) return name;
    std::string const s = "static " + result + " " + name + "(" + parameters + ") {\n  " + body + "\n}\n";
    std::string written;
    for (std::size_t k = 0; k < s.size(); ++k) {
      if (s[k] != '$') written += s[k];
      else if (s[++k] == 'F') written += t == dtype::float32 ? "f" : "";
      else written += type_text(t);
    }
    functions += written;
    return name;
  }
  /// Returns the text of an operator with `$0`, `$1`, ... for its operands; empty if C arithmetic is all it is.
  static std::string form(op_handle const& op) {
    operator_class const what = identify(op);
    if (what >= operator_class::add && what <= operator_class::neg) return "";
    if (op.c99) return op.c99;
    if (op.cpp.text) return op.cpp.text;
    if (op.cpp.infix) return op.cpp.infix;
    refuse::argument_is_invalid("emit_c",
                                (std::string("operator ") + op.name +
                                 " has no text in C: math.h has no function for it; state rules<>::c99, or write it "
                                 "in other operators")
                                    .c_str());
  }
  /// Returns an elementwise operator on operands of dtype `t`; the last ones, if conditions come first.
  expression operation(op_handle const& op, dtype t, std::vector<expression> const& x) {
    operator_class const what = identify(op);
    if (what >= operator_class::add && what <= operator_class::neg)
      return arithmetic(what, t, x[0], x.size() > 1 ? x[1] : expression{});
    return filled_in(form(op), t, x);
  }

private:
  std::string prefix;

  static char const* comparison(std::string_view name) {
    constexpr std::pair<std::string_view, char const*> all[] = {{"lt", " < "},  {"le", " <= "}, {"gt", " > "},
                                                                {"ge", " >= "}, {"eq", " == "}, {"ne", " != "}};
    for (auto const& [n, sign] : all)
      if (n == name) return sign;
    return nullptr;
  }
  static bool divides(std::string_view name) { return name == "fmod" || name == "remainder" || name == "floor_divide"; }
  /// Returns the name of a function of `math.h`; empty if there is none.
  static std::string of_math(std::string_view name, dtype t) {
    if (!is_floating(t)) return "";
    std::string const f = t == dtype::float32 ? "f" : "";
    if (name == "abs") return "fabs" + f;
    if (name == "round") return "nearbyint" + f;
    for (std::string_view known : {"exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh", "erf", "sqrt", "pow",
                                   "floor", "ceil", "trunc", "fmod"})
      if (known == name) return std::string(name) + f;
    return "";
  }
  std::string function(std::string_view called, dtype result, dtype t, std::string const& parameters,
                       std::string body) {
    for (std::size_t k = body.find("$R"); k != std::string::npos; k = body.find("$R", k))
      body.replace(k, 2, type_text(result));
    std::string const name = result == t ? std::string(called) : std::string(called) + "_" + ending(result);
    return own(name, type_text(result), t, parameters, body);
  }
  /// Returns the name of a function that C lacks.
  std::string own_function(std::string_view name, dtype t) {
    bool const is_unsigned = t == dtype::uint8 || t == dtype::bool_;
    std::string const one = "$T x", two = "$T a, $T b";
    if (name == "maximum" || name == "minimum")
      return function(name, t, t, two,
                      std::string("return a ") + (name == "maximum" ? ">" : "<") + " b" +
                          (is_floating(t) ? " || a != a" : "") + " ? a : b;");
    if (name == "sign")
      return function(name, t, t, one, is_unsigned ? "return x > 0;" : "return ($T)((x > 0) - (x < 0));");
    if (is_floating(t)) return own_function_of_floats(name, t);
    if (name == "abs") return function(name, t, t, one, "return x < 0 ? ($T)(0u - (u$T)x) : x;");
    if (name == "pow")
      return function(name, t, t, "$T x, $T y",
                      std::string("uint64_t r = 1, b = (uint64_t)x, e = (uint64_t)y;\n  ") +
                          (is_unsigned ? "" : "if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;\n  ") +
                          "for (; e != 0; e >>= 1, b *= b)\n    if (e & 1) r *= b;\n  return ($T)r;");
    if (divides(name)) return division(name, t);
    std::string const bits = t == dtype::int64 ? "64" : t == dtype::int32 ? "32" : "8";
    if (name == "shift_left")
      return function(name, t, t, two,
                      "return " + std::string(is_unsigned ? "" : "b < 0 || ") + "b >= " + bits +
                          " ? 0 : ($T)((uint64_t)a << b);");
    if (name == "shift_right")
      return function(name, t, t, two,
                      is_unsigned ? "return b >= " + bits + " ? 0 : ($T)(a >> b);"
                                  : "const bool beyond = b < 0 || b >= " + bits +
                                        " - 1;\n  return beyond ? (a < 0 ? -1 : 0) : a >> b;");
    if (name == "greatest_divisor") {
      std::string const size = is_unsigned ? "" : own_function("abs", t);
      return function(name, t, t, two,
                      "$T r;\n  " + (is_unsigned ? "" : "a = " + size + "(a), b = " + size + "(b);\n  ") +
                          "while (b != 0) r = " + (is_unsigned ? "($T)(a % b)" : "b == -1 ? 0 : a % b") +
                          ", a = b, b = r;\n  return " + (is_unsigned ? "a;" : size + "(a);"));
    }
    if (name == "least_multiple") {
      std::string const size = is_unsigned ? "" : own_function("abs", t), divisor = own_function("greatest_divisor", t);
      return function(name, t, t, two,
                      "const $T d = " + divisor + "(a, b);\n  return d == 0 ? 0 : " + size + "(" +
                          arithmetic(operator_class::mul, t, {"(a / d)"}, {"b"}).text + ");");
    }
    return unknown(name);
  }
  std::string own_function_of_floats(std::string_view name, dtype t) {
    std::string const one = "$T x", two = "$T a, $T b";
    if (name == "sigmoid")
      return function(name, t, t, one, "const $T e = exp$F(x < 0 ? x : -x);\n  return (x < 0 ? e : 1) / (1 + e);");
    if (name == "remainder")
      return function(name, t, t, two,
                      "const $T r = fmod$F(a, b);\n  return r != 0 && (r < 0) != (b < 0) ? r + b : r;");
    if (name == "floor_divide")
      return function(
          name, t, t, two,
          "const $T r = fmod$F(a, b);\n  $T q, f;\n  if (b == 0) return a / b;\n  q = (a - r) / b;\n  if (r "
          "!= 0 && (r < 0) != (b < 0)) q -= 1;\n  if (q == 0) return (signbit(a) != 0) != (signbit(b) != "
          "0) ? -($T)0 : 0;\n  f = floor$F(q);\n  return q - f > ($T)0.5 ? f + 1 : f;");
    if (name == "binary_exponent")
      return function(name, t, t, one,
                      "int e = 0;\n  if (x - x != 0) return 0;\n  (void)frexp$F(x, &e);\n  return ($T)e;");
    return unknown(name);
  }
  /// Returns a division of integers, which reports a divisor of 0.
  std::string division(std::string_view name, dtype t) {
    bool const is_unsigned = t == dtype::uint8 || t == dtype::bool_;
    std::string const faulty = "if (b == 0) {\n    *status = " + std::to_string(static_cast<int>(fault::division)) +
                               ";\n    return 0;\n  }\n  ";
    std::string const remainder = is_unsigned ? "return ($T)(a % b);" : "if (b == -1) return 0;\n  ";
    std::string body = remainder;
    if (name == "floor_divide")
      body = is_unsigned ? "return ($T)(a / b);"
                         : "if (b == -1) return " + arithmetic(operator_class::neg, t, {"a"}, {}).text +
                               ";\n  return a / b - (a % b != 0 && (a < 0) != (b < 0));";
    else if (!is_unsigned)
      body += name == "fmod" ? "return a % b;" : "return a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b;";
    return function(name, t, t, "$T a, $T b, int *status", faulty + body);
  }
  [[noreturn]] static std::string unknown(std::string_view name) {
    refuse::argument_is_invalid("emit_c", ("there is no function in C for kernel::" + std::string(name)).c_str());
  }

  /// Returns the argument list behind position `at` of a text, which is that of its "(", and moves `at` behind its ")".
  static std::vector<std::string> arguments_at(std::string const& s, std::size_t& at) {
    std::vector<std::string> all(1);
    int depth = 0;
    for (++at; at < s.size(); ++at) {
      if (s[at] == ')' && depth == 0) break;
      depth += (s[at] == '(') - (s[at] == ')');
      if (s[at] == ',' && depth == 0) {
        all.emplace_back();
        while (at + 1 < s.size() && s[at + 1] == ' ') ++at;
      } else {
        all.back() += s[at];
      }
    }
    ++at;
    return all;
  }
  /// Returns a text with its operands: `$0`, ..., the type `$T` and the end `$F` of functions of `math.h`. A call
  /// `kernel::f(...)` becomes what `call` writes.
  expression filled_in(std::string const& s, dtype t, std::vector<expression> const& x) {
    constexpr std::string_view kernel = "kernel::";
    std::string r;
    for (std::size_t k = 0; k < s.size();) {
      if (s.compare(k, kernel.size(), kernel) == 0) {
        std::size_t const open = s.find('(', k);
        std::string const name = s.substr(k + kernel.size(), open - k - kernel.size());
        bool const is_first = k == 0;
        k = open;
        std::vector<expression> in;
        for (std::string const& a : arguments_at(s, k)) in.push_back(filled_in(a, t, x));
        expression const y = call(name, t, in);
        if (is_first && k == s.size()) return y;
        r += within(y, binding::atom);
      } else if (s[k] != '$') {
        r += s[k++];
      } else if (s[k + 1] == 'T') {
        r += k + 2 < s.size() && s[k + 2] == '(' ? "(" + std::string(type_text(t)) + ")" : type_text(t);
        k += 2;
      } else if (s[k + 1] == 'F') {
        r += t == dtype::float32 ? "f" : "";
        k += 2;
      } else {
        bool const alone = (k == 0 || s[k - 1] == '(' || (k > 1 && s[k - 1] == ' ' && s[k - 2] == ',')) &&
                           (k + 2 == s.size() || s[k + 2] == ')' || s[k + 2] == ',');
        expression const& operand = x[static_cast<std::size_t>(s[k + 1] - '0')];
        if (k == 0 && s.size() == 2) return operand;
        r += alone ? operand.text : within(operand, binding::atom);
        k += 2;
      }
    }
    return {r, is_call(r) ? binding::atom : binding::choice};
  }
  /// True if a text is one call, or one name or number.
  static bool is_call(std::string const& s) {
    std::size_t k = 0;
    while (k < s.size() && (std::isalnum(static_cast<unsigned char>(s[k])) || s[k] == '_' || s[k] == '.')) ++k;
    if (k == s.size()) return true;
    if (k == 0 || s[k] != '(') return false;
    int depth = 0;
    for (; k < s.size(); ++k) {
      depth += (s[k] == '(') - (s[k] == ')');
      if (depth == 0) return k + 1 == s.size();
    }
    return false;
  }
};

} // namespace varve::c99

#pragma GCC diagnostic pop
