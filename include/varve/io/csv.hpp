// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/file_bytes.hpp>
#include <varve/core/number_text.hpp>
#include <varve/dispatch/thread_state.hpp> // defines what members of tensors call
#include <varve/value/tensor.hpp>

#include <algorithm>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Tables of numbers in text files, in the format that RFC 4180 describes.
namespace varve {

/// A table: the names of its columns (empty if the file has none) and its numbers, a float64 tensor [rows, columns].
struct csv_table {
  std::vector<std::string> names;
  tensor data;
};

/// The meaning of a table's first row: names of the columns (`present`) or numbers (`absent`). With `automatic` it
/// holds names if none of its fields is a number and not all are missing.
enum class csv_header : unsigned char { automatic, present, absent };

/// Options for reading the text of a table.
struct csv_options {
  char delimiter = ',';                      ///< what separates fields
  csv_header header = csv_header::automatic; ///< the meaning of the first row
  /// Reads an empty field, `NA`, `N/A`, `n/a`, `#N/A`, `NULL`, `null` and `None` as NaN. They are errors otherwise.
  bool missing_is_nan = false;
};

namespace detail {
/// A field without its quotes, and its position.
struct csv_field {
  std::string_view text;
  std::size_t line, column;
  bool quoted;

  bool is_missing() const {
    constexpr std::string_view words[] = {"", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "None"};
    return std::find(std::begin(words), std::end(words), text) != std::end(words);
  }
  bool is_number(double& v) const {
    return text.find_first_of("xX") == text.npos && read_number(text, v); // hexadecimal numbers count as names
  }
};

/// Reads rows of numbers. Throws `value_error` with the line and column of an error.
class csv_reader {
public:
  csv_reader(std::string_view text, csv_options const& how) : text_(text), how_(how) {
    if (ends_line(how.delimiter) || how.delimiter == '"')
      refuse::argument_is_invalid("csv", "neither a quote nor an end of line can separate fields");
    std::string_view const mark = "\xEF\xBB\xBF"; // the UTF-8 byte order mark that spreadsheets write
    if (text_.substr(0, mark.size()) == mark) text_.remove_prefix(mark.size());
  }
  csv_table read() {
    csv_table r;
    std::vector<double> numbers;
    std::size_t columns = 0, rows = 0;
    bool first = true;
    for (std::vector<csv_field> fields; next_row(fields); first = false) {
      if (first) columns = fields.size();
      if (fields.size() != columns)
        refuse(fields[0].line, 1, std::to_string(fields.size()) + " fields, but " + std::to_string(columns) + " above");
      if (first && is_header(fields)) {
        for (csv_field const& f : fields) r.names.emplace_back(f.text);
        continue;
      }
      for (csv_field const& f : fields) numbers.push_back(number(f));
      ++rows;
    }
    r.data = tensor::from_data(numbers.data(), dims{static_cast<index_t>(rows), static_cast<index_t>(columns)});
    return r;
  }

private:
  [[noreturn]] static void refuse(std::size_t line, std::size_t column, std::string const& what) {
    refuse::with<value_error>(
        ("varve: csv: line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what).c_str());
  }
  bool is_header(std::vector<csv_field> const& fields) const {
    if (how_.header != csv_header::automatic) return how_.header == csv_header::present;
    double v = 0;
    return std::none_of(fields.begin(), fields.end(), [&](csv_field const& f) { return f.is_number(v); }) &&
           !std::all_of(fields.begin(), fields.end(), [](csv_field const& f) { return f.is_missing(); });
  }
  double number(csv_field const& f) const {
    double v = 0;
    if (f.is_number(v)) return v;
    std::string const what = '"' + std::string(f.text.substr(0, 40)) + '"';
    if (!f.is_missing()) refuse(f.line, f.column, what + " is no number");
    if (!how_.missing_is_nan)
      refuse(f.line, f.column, what + " is a missing value; to have NaN for it, set csv_options::missing_is_nan");
    return std::numeric_limits<double>::quiet_NaN();
  }

  static bool ends_line(char c) { return c == '\n' || c == '\r'; }
  bool is_blank(char c) const { return (c == ' ' || c == '\t') && c != how_.delimiter; }
  /// True if the text continues with a character for which `is` returns true.
  template <class P>
  bool next_is(P const& is) const {
    return at_ < text_.size() && is(text_[at_]);
  }
  void skip_blanks() {
    while (next_is([&](char c) { return is_blank(c); })) ++at_;
  }
  /// Skips the end of a line: "\n", "\r\n" or "\r".
  bool skip_line_end() {
    if (!next_is(ends_line)) return false;
    at_ += text_.substr(at_, 2) == "\r\n" ? 2 : 1;
    ++line_, line_start_ = at_;
    return true;
  }
  bool is_delimiter(char c) const { return c == how_.delimiter; }

  /// Reads the fields of the next row and skips empty lines. Returns false at the end of the text.
  bool next_row(std::vector<csv_field>& fields) {
    unescaped_.clear();
    while (at_ < text_.size()) {
      fields.assign(1, next_field());
      while (next_is([&](char c) { return is_delimiter(c); })) ++at_, fields.push_back(next_field());
      skip_line_end();
      if (fields.size() > 1 || fields[0].quoted || !fields[0].text.empty()) return true;
    }
    return false;
  }
  csv_field next_field() {
    skip_blanks();
    csv_field f{{}, line_, at_ - line_start_ + 1, next_is([](char c) { return c == '"'; })};
    if (f.quoted) {
      f.text = quoted(f);
      skip_blanks();
      if (next_is([&](char c) { return !is_delimiter(c) && !ends_line(c); }))
        refuse(line_, at_ - line_start_ + 1, "text behind the closing quote of a field");
      return f;
    }
    std::size_t const from = at_;
    while (next_is([&](char c) { return !is_delimiter(c) && !ends_line(c); })) ++at_;
    f.text = text_.substr(from, at_ - from);
    while (!f.text.empty() && is_blank(f.text.back())) f.text.remove_suffix(1);
    return f;
  }
  /// Reads a field from its opening to its closing quote. Two quotes inside stand for one.
  std::string_view quoted(csv_field const& f) {
    std::size_t const from = ++at_;
    bool doubled = false;
    for (; next_is([](char) { return true; }); ++at_) {
      if (text_[at_] == '"') {
        if (text_.substr(at_, 2) != "\"\"") break;
        ++at_, doubled = true;
      } else if (text_[at_] == '\n' || (text_[at_] == '\r' && text_.substr(at_, 2) != "\r\n")) {
        ++line_, line_start_ = at_ + 1;
      }
    }
    if (at_ >= text_.size()) refuse(f.line, f.column, "the field has no closing quote");
    std::string_view const inside = text_.substr(from, at_++ - from);
    if (!doubled) return inside;
    std::string& s = unescaped_.emplace_back();
    for (std::size_t k = 0; k < inside.size(); ++k) s += inside[inside[k] == '"' ? k++ : k];
    return s;
  }

  std::string_view text_;
  csv_options how_;
  std::deque<std::string> unescaped_; // fields of this row that contain quotes
  std::size_t at_ = 0, line_ = 1, line_start_ = 0;
};

/// Returns a name as a field, quoted where it would otherwise be read back differently.
inline std::string csv_name(std::string const& name, char delimiter) {
  auto const blank = [](char c) { return c == ' ' || c == '\t'; };
  if (!name.empty() && !blank(name.front()) && !blank(name.back()) &&
      name.find_first_of(std::string("\"\r\n") + delimiter) == name.npos)
    return name;
  std::string r = "\"";
  for (char c : name) r += c == '"' ? std::string("\"\"") : std::string(1, c);
  return r + "\"";
}
} // namespace detail

/// Reads the numbers of a text row by row, and the names of the columns if the first row holds them
/// (`csv_options::header`). Fields may be quoted. Lines end in "\n", "\r\n" or "\r". Blanks around fields and empty
/// lines are skipped. Throws `value_error` with line and column for a field that is not a number, a row of a different
/// length, and a missing value unless `missing_is_nan` is set.
inline csv_table parse_csv(std::string_view text, csv_options const& how = {}) {
  return detail::csv_reader(text, how).read();
}
/// Reads a text whose fields are separated by `delimiter`: `parse_csv("1;2", ';')`.
inline csv_table parse_csv(std::string_view text, char delimiter) {
  return parse_csv(text, csv_options{delimiter, csv_header::automatic, false});
}
/// Reads a file in the same way as `parse_csv` reads a text.
inline csv_table read_csv(std::string const& path, csv_options const& how = {}) {
  return parse_csv(detail::bytes_of_file("read_csv", path), how);
}
/// Reads a file whose fields are separated by `delimiter`.
inline csv_table read_csv(std::string const& path, char delimiter) {
  return parse_csv(detail::bytes_of_file("read_csv", path), delimiter);
}
/// Writes a matrix, or a vector as one column, so that reading the file returns the same numbers and names. If one of
/// the names is a number, read the file with `csv_header::present`.
inline void write_csv(std::string const& path, tensor const& data, std::vector<std::string> const& names = {},
                      char delimiter = ',') {
  if (data.dim() < 1 || data.dim() > 2) refuse::argument_is_invalid("write_csv", "a table is a vector or a matrix");
  index_t const columns = data.dim() == 2 ? index_t(data.size(1)) : 1;
  if (!names.empty() && static_cast<index_t>(names.size()) != columns)
    refuse::argument_is_invalid("write_csv", (std::to_string(names.size()) + " names were given for " +
                                              std::to_string(columns) + " columns; give one for each, or none")
                                                 .c_str());
  std::string text;
  for (std::size_t k = 0; k < names.size(); ++k)
    text += (k ? std::string(1, delimiter) : "") + detail::csv_name(names[k], delimiter) +
            (k + 1 == names.size() ? "\n" : "");
  std::vector<double> const all = data.to_vector();
  for (std::size_t k = 0; k < all.size(); ++k) {
    text += detail::number_text(all[k]);
    text += static_cast<index_t>(k + 1) % columns == 0 ? '\n' : delimiter;
  }
  detail::write_file("write_csv", path, text);
}

} // namespace varve

#pragma GCC diagnostic pop
