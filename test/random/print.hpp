// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Programs and stacks as C++ that can be pasted into a test: beside `test/random/stacks.hpp`, whose helpers it names.
#include "stacks.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace random_programs {
namespace detail {
inline std::string number(double v) {
  if (v != v) return "NAN";
  if (std::isinf(v)) return v > 0 ? "INFINITY" : "-INFINITY";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", v);
  std::string s = text;
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}
inline std::string list(dims const& d) {
  std::string s = "dims{";
  for (int k = 0; k < d.n; ++k) s += (k ? ", " : "") + std::to_string(d[k]);
  return s + "}";
}
inline std::string type(dtype t) { return std::string("vv::dtype::") + (t == dtype::bool_ ? "bool_" : varve::name(t)); }
inline std::string value(int id) { return "v" + std::to_string(id); }
inline std::string values_of(std::vector<int> const& ids, std::size_t from = 0) {
  std::string s;
  for (std::size_t k = from; k < ids.size(); ++k) s += (k > from ? ", " : "") + value(ids[k]);
  return s;
}
inline std::string text(block const& b, std::string const& indent);

/// The text of an operator with its operands and attributes filled in.
inline std::string call(statement const& s, std::string const& indent) {
  std::string r;
  for (char const* c = s.op->text; *c; ++c) {
    char const* const end = *c == '{' ? std::strchr(c, '}') : nullptr;
    std::string const hole = end && end - c <= 5 ? std::string(c + 1, end) : "";
    if (hole.empty() || std::string("0123456789aiktnlfrp").find(hole[0]) == std::string::npos) {
      r += *c;
      continue;
    }
    std::size_t const k =
        hole.size() > 1 && hole[1] >= '0' && hole[1] <= '9' ? static_cast<std::size_t>(hole[1] - '0') : 0;
    std::size_t const split = s.at.empty() || s.at[0].n == 0 ? 0 : static_cast<std::size_t>(s.at[0][0]);
    if (hole == "p...") r += values_of(s.operands, split);
    else if (hole == "0..p")
      r += values_of({s.operands.begin(), s.operands.begin() + static_cast<std::ptrdiff_t>(split)});
    else if (hole.size() == 4) r += values_of(s.operands, static_cast<std::size_t>(hole[0] - '0'));
    else if (hole[0] == 'a' || hole[0] == 'k') r += list(s.at.at(k));
    else if (hole[0] == 'i') r += std::to_string(s.at.at(k)[0]);
    else if (hole[0] == 't') r += type(static_cast<dtype>(s.at.at(k)[0]));
    else if (hole[0] == 'n') r += number(s.numbers.at(k));
    else if (hole[0] == 'l') r += "std::int64_t(" + std::to_string(static_cast<std::int64_t>(s.numbers.at(k))) + ")";
    else if (hole[0] == 'f') r += text(s.bodies.at(k), indent);
    else if (hole == "r") r += s.at[0][1] ? "true" : "false";
    else r += value(s.operands.at(static_cast<std::size_t>(hole[0] - '0')));
    c += hole.size() + 1;
  }
  return r;
}
inline std::string line(statement const& s, std::string const& indent) {
  std::string const c = call(s, indent);
  if (s.results.empty()) return indent + c + ";\n";
  if (s.results.size() == 1 && s.op->of != kind::carrier)
    return indent + "tensor " + value(s.results[0]) + " = " + c + ";\n";
  if (s.op->of != kind::carrier) return indent + "auto [" + values_of(s.results) + "] = " + c + ";\n";
  std::string r = indent + "values r" + std::to_string(s.results[0]) + " = " + c + ";\n";
  for (std::size_t k = 0; k < s.results.size(); ++k)
    r += indent + "tensor " + value(s.results[k]) + " = r" + std::to_string(s.results[0]) + "[" + std::to_string(k) +
         "];\n";
  return r;
}
inline std::string text(block const& b, std::string const& indent) {
  std::string const in = indent + "  ";
  std::string r = "[&](values const& in) -> values {\n";
  for (std::size_t k = 0; k < b.parameters.size(); ++k)
    r += in + "tensor " + value(b.parameters[k]) + " = in[" + std::to_string(k) + "];\n";
  for (statement const& s : b.code) r += line(s, in);
  return r + in + "return {" + values_of(b.results) + "};\n" + indent + "}";
}
inline std::string text(input const& in) {
  std::string s = "from({";
  for (std::size_t k = 0; k < in.elements.size(); ++k) s += (k ? ", " : "") + number(in.elements[k]);
  s += "}, " + list(in.sizes) + ", " + type(in.type);
  static char const* const layouts[] = {"row_major", "transposed", "stepped"};
  s += std::string(", memory::") + layouts[static_cast<int>(in.memory)] + ")";
  return s + (in.expanded ? " /* its first row, expanded */" : "");
}
inline std::string ints(std::vector<dims> const& at, std::size_t from, std::size_t to) {
  std::string s = "vv::ints<";
  for (std::size_t k = from; k < to; ++k)
    for (index_t i : at.at(k)) s += (s.back() == '<' ? "" : ", ") + std::to_string(i);
  return s + ">{}";
}
/// A call whose attributes are types.
inline std::string static_call(statement const& s) {
  std::string text = s.op->text, r;
  if (std::string(s.op->name) == "slice") text = "vv::slice({0}, {i0}, {s0})";
  for (auto at = text.find("values{{"); at != std::string::npos; at = text.find("values{{")) {
    text.replace(at, 7, "std::tuple(");
    text.replace(text.find("}}", at) + 1, 1, ")");
  }
  for (std::size_t c = 0; c < text.size(); ++c) {
    std::size_t const end = text[c] == '{' ? text.find('}', c) : std::string::npos;
    if (end == std::string::npos || end == c + 1) {
      r += text[c];
      continue;
    }
    std::string const hole = text.substr(c + 1, end - c - 1);
    auto const k = static_cast<std::size_t>(hole.back() - '0');
    if (hole[0] == 'a' || hole[0] == 'i' || hole[0] == 'k') r += ints(s.at, k, k + 1);
    else if (hole[0] == 's') r += ints(s.at, 1, 4);
    else if (hole[0] == 'n') r += number(s.numbers.at(k));
    else if (hole[0] == 'l') r += "std::int64_t(" + std::to_string(static_cast<std::int64_t>(s.numbers.at(k))) + ")";
    else r += value(s.operands.at(k));
    c = end;
  }
  return r;
}
} // namespace detail

/// A program for the compiler as a generic lambda without captures.
inline std::string as_static_function(program const& p) {
  std::string r = "[](";
  for (std::size_t k = 0; k < p.inputs.size(); ++k)
    r += (k ? ", auto const& " : "auto const& ") + detail::value(static_cast<int>(k));
  r += ") {\n";
  for (statement const& s : p.body.code) {
    std::string const names = detail::values_of(s.results);
    r += "  [[maybe_unused]] auto const " + (s.results.size() > 1 ? "[" + names + "]" : names) + " = " +
         detail::static_call(s) + ";\n";
  }
  return r + "  return " + detail::value(p.body.results[0]) + ";\n}";
}
/// An input as an array.
inline std::string as_array(input const& in) {
  std::string s = "vv::array<double";
  for (index_t d : in.sizes) s += ", " + std::to_string(d);
  s += ">{{";
  for (std::size_t k = 0; k < in.elements.size(); ++k) s += (k ? ", " : "") + detail::number(in.elements[k]);
  return s + "}}";
}

/// A program and a stack as C++: `f` is the program, `f0` the stack of it, `args` its arguments.
inline std::string as_cpp(program const& p, stack const& s) {
  std::string r;
  block b = p.body;
  b.parameters.clear();
  std::string args;
  for (std::size_t k = 0; k < p.inputs.size(); ++k) {
    std::string const t = detail::text(p.inputs[k]);
    if (p.inputs[k].captured) {
      r += "tensor " + detail::value(static_cast<int>(k)) + " = " + t + ";\n";
    } else {
      b.parameters.push_back(static_cast<int>(k));
      args += (args.empty() ? "" : ",\n            ") + t;
    }
  }
  r += "values args{" + args + "};\nfunction f" + std::to_string(s.size()) + " = " + detail::text(b, "") + ";\n";
  for (std::size_t k = s.size(); k-- > 0;)
    r += "function f" + std::to_string(k) + " = [f = f" + std::to_string(k + 1) + "](values const& v) -> values { " +
         s[k]->text + " };  // " + s[k]->name + "\n";
  return r;
}
} // namespace random_programs
