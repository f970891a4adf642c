// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Reads the recorded cases of `data/` (its README tells the format).
#include "../sample/value.hpp"

#include <fstream>
#include <map>
#include <stdexcept>

namespace opinfo {
using namespace sample;

struct recorded {
  std::string op;
  int line = 0;
  bool refused = false;
  values operands;
  std::vector<dims> ints;
  tensor gives, cotangent, moves;
  std::map<std::size_t, tensor> gradient, tangent;
};

inline dtype dtype_named(std::string const& s) {
  for (auto t : {dtype::bool_, dtype::uint8, dtype::int32, dtype::int64, dtype::float32, dtype::float64})
    if (s == varve::name(t)) return t;
  throw std::runtime_error("no dtype " + s);
}
inline dims list(std::string const& s) {
  dims d;
  if (s == "-") return d;
  std::istringstream in(s);
  for (std::string n; std::getline(in, n, ',');) d.push_back(std::stoll(n));
  return d;
}
inline tensor value(std::istream& in) {
  std::string kind, type, word;
  in >> kind >> type >> word;
  dtype const t = dtype_named(type);
  auto number = [](std::string const& s) { return std::strtod(s.c_str(), nullptr); };
  if (kind == "number") {
    if (t == dtype::bool_) return tensor::from_number(word != "0");
    if (t == dtype::int64) return tensor::from_number(static_cast<std::int64_t>(std::stoll(word)));
    return tensor::from_number(number(word));
  }
  dims const sizes = list(word);
  in >> word;
  tensor r = tensor::empty(sizes, t);
  if (word == "strides") {
    in >> word;
    varve::layout l{sizes, list(word), 0, true};
    index_t last = 0;
    for (int k = 0; k < sizes.n; ++k) last += (sizes[k] - 1) * l.strides[k];
    r = tensor::empty({last + 1}, t).with_layout(l);
    in >> word;
  }
  auto const n = std::stoll(word);
  for (index_t k = 0; k < n; ++k) {
    in >> word;
    set(r, k, number(word));
  }
  return r;
}
inline std::vector<recorded> read(std::string const& path) {
  std::vector<recorded> cases;
  std::ifstream in(path);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::istringstream s(line);
    std::string word;
    s >> word;
    if (word == "case" || word == "refused") {
      cases.emplace_back();
      s >> cases.back().op;
      cases.back().line = number;
      cases.back().refused = word == "refused";
      continue;
    }
    if (word == "#") continue;
    recorded& c = cases.back();
    std::size_t k = 0;
    if (word == "operand") c.operands.push_back(value(s));
    else if (word == "gives") c.gives = value(s);
    else if (word == "cotangent") c.cotangent = value(s);
    else if (word == "moves") c.moves = value(s);
    else if (word == "gradient") s >> k, c.gradient[k] = value(s);
    else if (word == "tangent") s >> k, c.tangent[k] = value(s);
    else if (word == "ints") {
      dims d;
      index_t n = 0, i = 0;
      for (s >> n; d.n < n && s >> i;) d.push_back(i >= index_t{1} << 62 ? INT64_MAX : i); // "the end"
      c.ints.push_back(d);
    } else throw std::runtime_error(path + ": what is " + word);
  }
  return cases;
}
} // namespace opinfo
