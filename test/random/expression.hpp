// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Runs the text of a row: C++ of calls, operators and numbers, with operands and attributes in braces. What a program
/// prints is what it runs. Functions are called by name (`ops::call`).
#include "program.hpp"

#include <varve/by_name/all.hpp>
#include <varve/varve.hpp>

#include <array>
#include <cctype>
#include <cstring>
#include <map>
#include <string_view>

namespace random_programs {
namespace vv = varve;

/// {0} is operand 0, {a0} attribute 0 as sizes or axes, {i0} its first number, {k0} whether axes are kept, {t0} a
/// dtype, {n0} a number, {l0} a whole number.
class expression {
public:
  using argument = varve::argument;
  expression(char const* text, values const& x, statement const& s) : at_(text), x_(x), s_(s) {}

  values run() {
    values r;
    flatten(comparison(), r);
    if (*at_) wrong();
    return r;
  }

private:
  [[noreturn]] void wrong() const { refuse("cannot read " + std::string(at_)); }
  [[noreturn]] static void refuse(std::string const& why) {
    throw vv::value_error(("varve: random programs: " + why).c_str());
  }
  static void flatten(argument const& a, values& into) {
    if (a.is<tensor>()) into.push_back(a.as<tensor>());
    else if (a.is<argument::list>())
      for (argument const& e : a.as<argument::list>()) flatten(e, into);
  }
  bool takes(std::string_view what) {
    while (*at_ == ' ') ++at_;
    if (std::strncmp(at_, what.data(), what.size()) != 0) return false;
    at_ += what.size();
    return true;
  }
  void expect(std::string_view what) {
    if (!takes(what)) wrong();
  }
  argument::list list(std::string_view end) {
    argument::list r;
    while (!takes(end)) {
      r.push_back(comparison());
      takes(",");
    }
    return r;
  }
  /// An operator of C++ between tensors, or a tensor and a number.
  template <class F>
  static argument between(argument const& a, argument const& b, F const& f) {
    auto const with = [&](auto const& x) -> argument {
      if (b.is<tensor>()) return f(x, b.as<tensor>());
      if constexpr (std::is_same_v<std::decay_t<decltype(x)>, tensor>)
        return b.is<double>() ? f(x, b.as<double>()) : f(x, static_cast<std::int64_t>(b.as<vv::extent>().number()));
      else refuse("an operator between numbers");
    };
    if (a.is<tensor>()) return with(a.as<tensor>());
    return a.is<double>() ? with(a.as<double>()) : with(static_cast<std::int64_t>(a.as<vv::extent>().number()));
  }
  argument comparison() {
    argument const a = sum();
    if (takes("<=")) return between(a, sum(), [](auto const& x, auto const& y) { return tensor(x <= y); });
    if (takes("<")) return between(a, sum(), [](auto const& x, auto const& y) { return tensor(x < y); });
    if (takes(">=")) return between(a, sum(), [](auto const& x, auto const& y) { return tensor(x >= y); });
    if (takes(">")) return between(a, sum(), [](auto const& x, auto const& y) { return tensor(x > y); });
    if (takes("!=")) return between(a, sum(), [](auto const& x, auto const& y) { return tensor(x != y); });
    return a;
  }
  argument sum() {
    for (argument a = product();;) {
      if (takes("+")) a = between(a, product(), [](auto const& x, auto const& y) { return tensor(x + y); });
      else if (takes("-")) a = between(a, product(), [](auto const& x, auto const& y) { return tensor(x - y); });
      else return a;
    }
  }
  argument product() {
    for (argument a = sign();;) {
      if (takes("*")) a = between(a, sign(), [](auto const& x, auto const& y) { return tensor(x * y); });
      else if (takes("/")) a = between(a, sign(), [](auto const& x, auto const& y) { return tensor(x / y); });
      else return a;
    }
  }
  argument sign() {
    if (!takes("-")) return member();
    argument const a = member();
    if (a.is<tensor>()) return -a.as<tensor>();
    return a.is<double>() ? argument(-a.as<double>()) : argument(-a.as<vv::extent>().number());
  }
  argument member() {
    argument const a = primary();
    if (takes(".data()")) return a.as<tensor>().data();
    if (!takes(".at(")) return a;
    tensor const index = comparison().as<tensor>();
    expect(")");
    return a.as<tensor>().at(index);
  }
  argument primary() {
    if (takes("(")) {
      argument const a = comparison();
      expect(")");
      return a;
    }
    if (takes("values{")) return list("}");
    if (takes("\"")) {
      std::string s;
      while (*at_ && *at_ != '"') s += *at_++;
      expect("\"");
      return s;
    }
    if (takes("static_cast<vv::index_reduction>(")) {
      static std::array const names{"sum", "prod", "mean", "amax", "amin"};
      argument const k = comparison();
      expect(")");
      return names.at(static_cast<std::size_t>(k.as<vv::extent>().number()));
    }
    if (takes("true")) return true;
    if (takes("vv::dtype::float64")) return dtype::float64;
    if (takes("vv::dtype::int64")) return dtype::int64;
    if (takes("vv::")) return call();
    return *at_ == '{' ? hole() : number();
  }
  argument number() {
    char* end = nullptr;
    double const v = std::strtod(at_, &end);
    if (end == at_) wrong();
    bool const whole =
        std::string_view(at_, static_cast<std::size_t>(end - at_)).find_first_of(".e") == std::string::npos;
    at_ = end;
    return whole ? argument(static_cast<index_t>(v)) : argument(v);
  }
  argument hole() {
    expect("{");
    if (takes("}")) return argument::list{};
    char const what = std::isdigit(static_cast<unsigned char>(*at_)) ? 'x' : *at_++;
    if (!std::isdigit(static_cast<unsigned char>(*at_))) wrong();
    auto const k = static_cast<std::size_t>(*at_++ - '0');
    expect("}");
    switch (what) {
    case 'x':
      return x_.at(k);
    case 'a':
      return s_.at.at(k);
    case 'i':
      return s_.at.at(k)[0].number();
    case 'k':
      return s_.at.at(k)[0] != 0;
    case 't':
      return static_cast<dtype>(s_.at.at(k)[0].number());
    case 'n':
      return s_.numbers.at(k);
    case 'l':
      return static_cast<std::int64_t>(s_.numbers.at(k));
    default:
      wrong();
    }
  }
  argument call() {
    std::string name;
    while (std::isalnum(static_cast<unsigned char>(*at_)) || *at_ == '_') name += *at_++;
    expect("(");
    argument::list x = list(")");
    std::vector<varve::named_argument> named;
    if (!x.empty() && x.back().is<dtype>()) { // a keyword in Python
      named.push_back({"dtype", x.back()});
      x.pop_back();
    }
    argument::list y = vv::ops::call(known(name), x, named);
    return y.size() == 1 ? y[0] : argument(y);
  }
  /// PyTorch's name of a function of varve.
  static std::string const& known(std::string const& name) {
    static std::map<std::string, std::string> names{{"std_dev", "std"}, {"max_along", "max"}};
    auto const found = names.find(name);
    if (found != names.end()) return found->second;
    for (char const* space : {"", "linalg.", "nn.functional.", "special."})
      if (!vv::ops::schemas(space + name).empty()) return names[name] = space + name;
    refuse("no function is called " + name);
  }

  char const* at_;
  values const& x_;
  statement const& s_;
};
} // namespace random_programs
