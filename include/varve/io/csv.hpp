// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/file_bytes.hpp>
#include <varve/value/tensor.hpp>

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Tables of numbers in text files.
namespace varve {

/// A table: its columns' names, empty where the file has none, and its numbers, float64 of shape [rows, columns].
struct csv_table {
  std::vector<std::string> names;
  tensor data;
};

namespace detail {
/// Reads lines of numbers; what is wrong is refused with its line and column.
class csv_reader {
public:
  csv_reader(std::string_view text, char delimiter) : text_(text), delimiter_(delimiter) {
    std::string_view const mark = "\xEF\xBB\xBF"; // of UTF-8, with which spreadsheets begin
    if (text_.substr(0, mark.size()) == mark) text_.remove_prefix(mark.size());
  }
  csv_table read() {
    csv_table r;
    std::vector<double> numbers;
    index_t columns = -1, rows = 0;
    for (std::string_view line; next_line(line);) {
      if (line.empty()) continue;
      std::vector<std::string_view> const fields = split(line);
      index_t const n = static_cast<index_t>(fields.size());
      double first = 0;
      if (columns < 0 && !is_number(fields[0], first)) {
        for (std::string_view f : fields) r.names.emplace_back(unquoted(f));
        columns = n;
        continue;
      }
      if (columns < 0) columns = n;
      if (n != columns) refuse(line_, 1, std::to_string(n) + " fields, but " + std::to_string(columns) + " above");
      for (std::string_view f : fields) {
        double v = 0;
        if (!is_number(f, v))
          refuse(line_, static_cast<std::size_t>(f.data() - line.data()) + 1, '"' + std::string(f) + "\" is no number");
        numbers.push_back(v);
      }
      ++rows;
    }
    r.data = tensor::from_data(numbers.data(), dims{rows, columns < 0 ? index_t(0) : columns});
    return r;
  }

private:
  [[noreturn]] static void refuse(std::size_t line, std::size_t column, std::string const& what) {
    refuse::with<value_error>(
        ("varve: csv: line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what).c_str());
  }
  bool next_line(std::string_view& line) {
    if (at_ >= text_.size()) return false;
    std::size_t const end = (std::min)(text_.find('\n', at_), text_.size());
    line = text_.substr(at_, end - at_);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    at_ = end + 1, ++line_;
    return true;
  }
  std::vector<std::string_view> split(std::string_view line) const {
    std::vector<std::string_view> r;
    for (std::size_t from = 0; from <= line.size();) {
      std::size_t const end = (std::min)(line.find(delimiter_, from), line.size());
      r.push_back(trimmed(line.substr(from, end - from)));
      from = end + 1;
    }
    return r;
  }
  static std::string_view trimmed(std::string_view s) {
    while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
    return s;
  }
  static std::string_view unquoted(std::string_view s) {
    return s.size() > 1 && s.front() == '"' && s.back() == '"' ? s.substr(1, s.size() - 2) : s;
  }
  static bool is_number(std::string_view s, double& v) {
    if (!s.empty() && s.front() == '+') s.remove_prefix(1);
    auto const [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
    return !s.empty() && error == std::errc() && end == s.data() + s.size();
  }
  std::string_view text_;
  char delimiter_;
  std::size_t at_ = 0, line_ = 0;
};
} // namespace detail

/// The numbers of a text, row by row. A first line that does not begin with a number holds the columns' names; empty
/// lines are passed over. `value_error` with line and column of what is no number, and of a row of another length.
inline csv_table parse_csv(std::string_view text, char delimiter = ',') {
  return detail::csv_reader(text, delimiter).read();
}
/// ... of a file.
inline csv_table read_csv(std::string const& path, char delimiter = ',') {
  return parse_csv(detail::bytes_of_file("read_csv", path), delimiter);
}
/// Writes a matrix, or a vector as one column, as text that gives the same numbers again.
inline void write_csv(std::string const& path, tensor const& data, std::vector<std::string> const& names = {},
                      char delimiter = ',') {
  index_t const columns = data.dim() == 2 ? data.size(1) : 1;
  if (data.dim() < 1 || data.dim() > 2) refuse::argument_is_invalid("write_csv", "a table is a vector or a matrix");
  std::string text;
  for (std::size_t k = 0; k < names.size(); ++k)
    text += (k ? std::string(1, delimiter) : "") + names[k] + (k + 1 == names.size() ? "\n" : "");
  std::vector<double> const all = data.to_vector();
  for (std::size_t k = 0; k < all.size(); ++k) {
    char number[32];
    std::snprintf(number, sizeof number, "%.17g", all[k]);
    text += number;
    text += static_cast<index_t>(k + 1) % columns == 0 ? '\n' : delimiter;
  }
  detail::write_file("write_csv", path, text);
}

} // namespace varve

#pragma GCC diagnostic pop
