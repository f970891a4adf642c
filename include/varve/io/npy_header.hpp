// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/dims.hpp>
#include <varve/core/dtype.hpp>
#include <varve/core/message.hpp>

#include <charconv>
#include <string>
#include <string_view>

/// @file
/// Headers of `.npy` files: Python dictionaries, as NumPy and other programs write them.
namespace varve::detail {

/// NumPy's name of a dtype.
struct npy_type {
  char const* name;
  dtype type;
};
inline constexpr npy_type npy_types[] = {{"|b1", dtype::bool_}, {"|u1", dtype::uint8},   {"<i4", dtype::int32},
                                         {"<i8", dtype::int64}, {"<f4", dtype::float32}, {"<f8", dtype::float64},
                                         {"|i1", dtype::int8},  {"<i2", dtype::int16},   {"<f2", dtype::float16}};
/// Throws `value_error`. `place` names the array that is read, such as "w.npy: ", or is empty.
[[noreturn]] inline void refuse_npy(std::string const& place, std::string const& what) {
  refuse::with<value_error>(("varve: npy: " + place + what).c_str());
}

/// The type, order and shape of an array.
struct npy_header {
  dtype type = dtype::bool_;
  bool columns = false;
  dims sizes{};
};

/// Reads a header. Its keys may have any order and quotes of either kind.
class npy_header_reader {
public:
  npy_header_reader(std::string const& place, std::string_view text) : place_(place), text_(text) {}

  npy_header read() {
    npy_header r;
    unsigned seen = 0;
    expect('{');
    while (!take('}')) {
      std::string_view const key = string();
      expect(':');
      if (key == "descr") r.type = type(), seen |= 1;
      else if (key == "fortran_order") r.columns = truth(), seen |= 2;
      else if (key == "shape") r.sizes = shape(), seen |= 4;
      else refuse("has the key '" + std::string(key.substr(0, 40)) + "', which no array has");
      if (take(',')) continue;
      expect('}');
      break;
    }
    if (seen != 7) refuse("lacks 'descr', 'fortran_order' or 'shape'");
    return r;
  }

private:
  [[noreturn]] void refuse(std::string const& what) const { refuse_npy(place_, "the header " + what); }
  bool take(char c) {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) text_.remove_prefix(1);
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c))
      refuse(std::string("must have '") + c + "' before \"" + std::string(text_.substr(0, 40)) + "\" (column " +
             std::to_string(column()) + ")");
  }
  std::size_t column() const { return static_cast<std::size_t>(text_.data() - whole_) + 1; }
  std::string_view string() {
    char const quote = take('"') ? '"' : '\'';
    if (quote == '\'') expect(quote);
    std::size_t const end = text_.find(quote);
    if (end == text_.npos) refuse("has a string without an end");
    std::string_view const r = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return r;
  }
  bool word(std::string_view w) {
    if (text_.substr(0, w.size()) != w) return false;
    text_.remove_prefix(w.size());
    return true;
  }
  bool truth() {
    (void)take(' ');
    if (word("True")) return true;
    if (!word("False")) refuse("says of 'fortran_order' neither True nor False");
    return false;
  }
  /// Reads a type with its byte order. '<' and '=' are this machine's order; the order of single bytes does not matter.
  dtype type() {
    if (take('['))
      refuse_type("[" + std::string(text_.substr(0, text_.find(']'))) + "]", "; save each field as an array");
    std::string_view const all = string();
    std::string_view const name = all.substr(!all.empty() && std::string_view("<>=|").find(all[0]) != all.npos);
    for (npy_type const& known : npy_types) {
      if (name != known.name + 1) continue;
      if (all[0] == '>' && itemsize(known.type) > 1) refuse_type(all, "; convert them to little-endian ones");
      return known.type;
    }
    refuse_type(all, "");
  }
  [[noreturn]] void refuse_type(std::string_view type, char const* instead) const {
    refuse::with<dtype_error>(
        ("varve: npy: " + place_ + "elements of type '" + std::string(type.substr(0, 80)) + "' are not read" + instead)
            .c_str());
  }
  dims shape() {
    dims r;
    for (expect('('); !take(')');) {
      if (r.n == max_rank) refuse("has more sizes than a tensor can have");
      r.push_back(size());
      (void)word("L"); // an integer of Python 2 type long
      if (take(',')) continue;
      expect(')');
      break;
    }
    return r;
  }
  index_t size() {
    constexpr index_t most = index_t{1} << 60; // beyond any memory, and below the bit patterns of symbols
    index_t n = 0;
    auto const [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), n);
    if (error != std::errc() || n < 0 || n > most) refuse("has a size that is no number");
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return n;
  }

  std::string const& place_;
  std::string_view text_;
  char const* whole_ = text_.data();
};

} // namespace varve::detail

#pragma GCC diagnostic pop
