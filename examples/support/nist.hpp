// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <fstream>
#include <istream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

/// One problem of the NIST Statistical Reference Datasets, as its .dat file states it.
struct nist_problem {
  std::vector<double> start[2], certified;
  double residual = 0;        // certified sum of squares
  std::size_t predictors = 0; // numbers x of one observation
  std::vector<double> y, x;   // x holds `predictors` numbers after each other for each y
  std::size_t size() const { return y.size(); }
};

/// Reads the parameters (`b1 = start1 start2 certified deviation`), the certified sum of squares, and the table behind
/// the second `Data:`, whose heading names the predictors. Whatever is malformed, missing or of another count than the
/// file says is an error that names the line.
inline nist_problem read_nist(std::istream& file, std::string const& path) {
  nist_problem p;
  bool table = false, has_residual = false;
  std::size_t observations = 0;
  int line_number = 0;
  auto const fail = [&](std::string const& what) {
    throw std::runtime_error(path + ":" + std::to_string(line_number) + ": " + what);
  };
  auto const only_blanks_remain = [](std::istream& in) { return (in >> std::ws).eof(); };
  for (std::string line; std::getline(file, line);) {
    ++line_number;
    std::istringstream in(line);
    if (table) {
      if (only_blanks_remain(in)) continue;
      for (std::size_t k = 0; k <= p.predictors; ++k) {
        double number;
        if (!(in >> number)) fail(std::to_string(p.predictors + 1) + " numbers expected");
        (k == 0 ? p.y : p.x).push_back(number);
      }
      if (!only_blanks_remain(in)) fail("end of line expected behind " + std::to_string(p.predictors + 1) + " numbers");
      continue;
    }
    auto const begins = [&](std::string const& with) { return line.rfind(with, 0) == 0; };
    auto const number_behind = [&](char const* label) {
      double number = 0;
      std::istringstream rest(line.substr(std::string(label).size()));
      if (!(rest >> number) || !only_blanks_remain(rest))
        fail("one number expected behind `" + std::string(label) + "`");
      return number;
    };
    std::string name, equals;
    in >> name >> equals;
    if (equals == "=" && name == "b" + std::to_string(p.certified.size() + 1)) {
      double a, b, c, deviation;
      if (!(in >> a >> b >> c >> deviation) || !only_blanks_remain(in))
        fail("two starting points, the certified value and its deviation expected behind `" + name + " =`");
      p.start[0].push_back(a);
      p.start[1].push_back(b);
      p.certified.push_back(c);
    } else if (equals == "=" && name.size() > 1 && name[0] == 'b' &&
               name.find_first_not_of("0123456789", 1) == std::string::npos) {
      fail("parameter b" + std::to_string(p.certified.size() + 1) + " expected, not " + name);
    } else if (begins("Residual Sum of Squares:")) {
      p.residual = number_behind("Residual Sum of Squares:");
      has_residual = true;
    } else if (begins("Number of Observations:")) {
      observations = static_cast<std::size_t>(number_behind("Number of Observations:"));
    } else if (name == "Data:" &&
               equals == "y") { // the heading of the table; another line `Data:` tells about it in words
      for (std::string x; in >> x; ++p.predictors)
        if (x[0] != 'x') fail("the names of predictors (x, x1, ...) expected, not " + x);
      if (p.predictors == 0) fail("the names of predictors (x, x1, ...) expected behind `Data: y`");
      table = true;
    }
  }
  if (p.certified.empty()) fail("the file ends without parameters (`b1 = ...`)");
  if (!has_residual) fail("the file ends without `Residual Sum of Squares:`");
  if (p.y.empty()) fail("the file ends without data behind `Data: y x`");
  if (observations != p.y.size())
    fail("the file ends after " + std::to_string(p.y.size()) + " of " + std::to_string(observations) + " observations");
  return p;
}
inline nist_problem load_nist(std::string const& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  return read_nist(file, path);
}
