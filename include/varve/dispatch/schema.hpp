// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/message.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace varve {

/// One argument or result of an operator in PyTorch's notation: `Tensor(a!) self`, `int[] dim`, `bool keepdim=False`.
struct schema_argument {
  std::string type, name, default_value;
  /// The alias set, such as `a` in `Tensor(a!)`. Empty for values with memory of their own.
  std::string alias;
  bool mutated = false, keyword_only = false;

  bool is_tensor() const { return type.rfind("Tensor", 0) == 0; }
  bool operator==(schema_argument const&) const = default;
};

/// The schema of an operator in PyTorch's notation: `name(arguments) -> results`.
struct operator_schema {
  std::string name;
  std::vector<schema_argument> arguments, results;

  bool operator==(operator_schema const&) const = default;
  /// Reads a schema. Throws `value_error`, which shows what was expected and where.
  template <class S = operator_schema>
  static S parse(std::string_view text);
  /// Returns the number of tensor arguments, which are operands; `attributes` returns the number of the others.
  int operands() const {
    int n = 0;
    for (auto const& a : arguments) n += a.is_tensor();
    return n;
  }
  int attributes() const { return static_cast<int>(arguments.size()) - operands(); }
  bool mutates() const {
    for (auto const& a : arguments)
      if (a.mutated) return true;
    return false;
  }
  /// Returns the index among the operands of the one whose memory result r shares, or -1.
  int aliased_operand(int r) const {
    std::string const& set = results[static_cast<std::size_t>(r)].alias;
    int k = 0;
    for (auto const& a : arguments) {
      if (!a.is_tensor()) continue;
      if (!set.empty() && a.alias == set) return k;
      ++k;
    }
    return -1;
  }
};
/// Returns the text that `operator_schema::parse` reads back. (Both are templates only so that they cost nothing unless
/// used.)
template <class = void>
std::string to_string(operator_schema const& s);

namespace detail {
template <class S>
class schema_reader {
public:
  explicit schema_reader(std::string_view text) : text_(text) {}
  S read() {
    S s;
    s.name = word("the operator's name", ":.");
    expect("(");
    bool keyword_only = false;
    if (!accept(")")) {
      do {
        if (accept("*")) {
          keyword_only = true;
          continue;
        }
        s.arguments.push_back(argument(true));
        s.arguments.back().keyword_only = keyword_only;
      } while (accept(","));
      expect(")");
    }
    expect("->");
    if (accept("(")) {
      if (!accept(")")) {
        do s.results.push_back(argument(false));
        while (accept(","));
        expect(")");
      }
    } else {
      s.results.push_back(argument(false));
    }
    if (skip(); at_ != text_.size()) fail("the end");
    return s;
  }

private:
  static bool letter(char c, std::string_view more) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           more.find(c) != more.npos;
  }
  [[noreturn]] void fail(char const* expected) const {
    refuse::with<value_error>(
        ("varve: schema \"" + std::string(text_) + "\": expected " + expected + " at column " + std::to_string(at_ + 1))
            .c_str());
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view s) {
    skip();
    if (text_.substr(at_, s.size()) != s) return false;
    at_ += s.size();
    return true;
  }
  void expect(char const* s) {
    if (!accept(s)) fail(s);
  }
  std::string word(char const* expected, std::string_view more = "") {
    skip();
    std::size_t const from = at_;
    while (at_ < text_.size() && letter(text_[at_], more)) ++at_;
    if (at_ == from) fail(expected);
    return std::string(text_.substr(from, at_ - from));
  }
  schema_argument argument(bool named) {
    schema_argument a;
    a.type = word("a type");
    if (accept("(")) {
      a.alias = word("an alias set");
      a.mutated = accept("!");
      expect(")");
    }
    bool const of_optional = accept("?["); // as in `Tensor?[]`
    if (of_optional) a.type += "?";
    if (of_optional || accept("[")) {
      a.type += "[" + (accept("]") ? "]" : word("a count") + "]");
      if (a.type.back() != ']' || a.type[a.type.size() - 2] != '[') expect("]");
    }
    if (accept("?")) a.type += "?";
    if (named) a.name = word("the argument's name");
    else if (skip(); at_ < text_.size() && letter(text_[at_], "")) a.name = word("a name");
    if (named && accept("=")) a.default_value = default_value();
    return a;
  }
  /// Reads a word, a list of numbers, or a text in quotation marks.
  std::string default_value() {
    skip();
    std::size_t const from = at_;
    char const open = at_ < text_.size() ? text_[at_] : ' ', close = open == '[' ? ']' : open;
    if (open != '[' && open != '\'' && open != '"') return word("a default", "-.+");
    while (++at_ < text_.size() && text_[at_] != close) {}
    if (at_ == text_.size()) fail("the end of the default");
    return std::string(text_.substr(from, ++at_ - from));
  }
  std::string_view text_;
  std::size_t at_ = 0;
};
} // namespace detail

template <class S>
S operator_schema::parse(std::string_view text) {
  return detail::schema_reader<S>(text).read();
}

template <class>
std::string to_string(operator_schema const& s) {
  auto const one = [](schema_argument const& a) {
    std::string t = a.type.substr(0, a.type.find_first_of("[?"));
    if (!a.alias.empty()) t += "(" + a.alias + (a.mutated ? "!)" : ")");
    t += a.type.substr(t.find('(') == t.npos ? t.size() : t.find('('));
    if (!a.name.empty()) t += " " + a.name;
    return a.default_value.empty() ? t : t + "=" + a.default_value;
  };
  std::string r = s.name + "(";
  bool keyword_only = false;
  for (std::size_t k = 0; k < s.arguments.size(); ++k) {
    if (k) r += ", ";
    if (s.arguments[k].keyword_only && !keyword_only) {
      r += "*, ";
      keyword_only = true;
    }
    r += one(s.arguments[k]);
  }
  r += ") -> ";
  if (s.results.size() == 1) return r + one(s.results[0]);
  r += "(";
  for (std::size_t k = 0; k < s.results.size(); ++k) r += (k ? ", " : "") + one(s.results[k]);
  return r + ")";
}

} // namespace varve
