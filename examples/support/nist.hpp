// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

/// One problem of the NIST Statistical Reference Datasets, as its .dat file states it.
struct nist_problem {
  std::vector<double> start[2], certified;
  double residual = 0; // certified sum of squares
  std::vector<double> y, x;
};

/// Reads the parameters (`b1 = start1 start2 certified deviation`), the certified sum of squares, and the table behind the second `Data:`.
inline nist_problem load_nist(std::string const& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  nist_problem p;
  bool table = false;
  int line_number = 0;
  for (std::string line; std::getline(file, line);) {
    ++line_number;
    std::istringstream in(line);
    if (table) {
      double y, x;
      if (in >> y >> x) {
        p.y.push_back(y);
        p.x.push_back(x);
      } else if (line.find_first_not_of(" \r\t") != std::string::npos) {
        throw std::runtime_error(path + ":" + std::to_string(line_number) + ": two numbers expected");
      }
      continue;
    }
    std::string name, equals;
    double a, b, c;
    if (in >> name >> equals >> a >> b >> c && equals == "=" && name[0] == 'b') {
      p.start[0].push_back(a);
      p.start[1].push_back(b);
      p.certified.push_back(c);
    }
    if (line.rfind("Residual Sum of Squares:", 0) == 0) p.residual = std::stod(line.substr(24));
    table = line.rfind("Data:   y", 0) == 0;
  }
  if (p.y.empty() || p.certified.empty()) throw std::runtime_error(path + ": no data found");
  return p;
}
