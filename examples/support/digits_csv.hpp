// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <fstream>
#include <istream>
#include <stdexcept>
#include <string>
#include <vector>

/// Images of 64 pixels scaled to [0, 1], and their labels.
struct digit_set {
  std::vector<float> pixels;
  std::vector<int> labels;
  std::size_t size() const { return labels.size(); }
};

/// Reads rows of 64 integers 0..16 and a label 0..9, separated by commas. A malformed row is an error that names line
/// and column (the number of the field); blank lines at the end are none.
inline digit_set read_digits(std::istream& file, std::string const& path) {
  digit_set set;
  int line_number = 0;
  for (std::string line; std::getline(file, line);) {
    ++line_number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") == std::string::npos && (file >> std::ws).eof()) break;
    auto const fail = [&](int column, std::string const& what) {
      throw std::runtime_error(path + ":" + std::to_string(line_number) + ": column " + std::to_string(column) + ": " +
                               what);
    };
    std::size_t at = 0;
    for (int column = 1; column <= 65; ++column) {
      if (column > 1 && (at >= line.size() || line[at++] != ','))
        fail(column, "a comma and another number expected (a row has 65 columns)");
      std::size_t const start = at;
      int number = 0;
      while (at < line.size() && line[at] >= '0' && line[at] <= '9' && at - start < 3)
        number = number * 10 + (line[at++] - '0');
      if (at == start) fail(column, "a number expected");
      if (number > (column == 65 ? 9 : 16))
        fail(column, std::to_string(number) + " is out of range 0 to " + (column == 65 ? "9" : "16"));
      if (column == 65) set.labels.push_back(number);
      else set.pixels.push_back(static_cast<float>(number) / 16);
    }
    if (at != line.size()) fail(66, "end of line expected");
  }
  if (set.size() == 0) throw std::runtime_error(path + ": no rows");
  return set;
}
inline digit_set load_digits(std::string const& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  return read_digits(file, path);
}
