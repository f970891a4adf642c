// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Reads the recorded cases of `data/` (its README tells the format).
#include "../sample/value.hpp"

#include <varve/by_name/argument.hpp>

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace opinfo {
using namespace sample;
using varve::argument;
using varve::named_argument;

/// A derivative: of some outputs by some of the tensors among the arguments, which are numbered as they come.
struct derivative {
  std::vector<std::size_t> outputs, inputs;
  std::vector<argument> directions, results;
};
struct recorded {
  std::string op, file;
  int number = 0;
  bool refused = false, expressible = true;
  std::vector<argument> arguments, outputs;
  std::vector<named_argument> named;
  derivative vjp, jvp;
};

inline dtype dtype_named(std::string s) {
  for (auto t = dtype::bool_; t <= dtype::int16; t = static_cast<dtype>(static_cast<int>(t) + 1))
    if (s == varve::name(t)) return t;
  throw std::runtime_error("no dtype " + s);
}
inline dims list_of_sizes(std::string const& s) {
  dims d;
  std::istringstream in(s);
  if (s != "-")
    for (std::string n; std::getline(in, n, 'x');) d.push_back(std::stoll(n));
  return d;
}

class value_reader {
public:
  value_reader(std::string const& line, recorded& to) : in_(line), case_(to) {}
  argument read() {
    std::string w;
    in_ >> w;
    return of(w);
  }
  std::vector<std::size_t> numbers() {
    std::vector<std::size_t> r;
    for (std::string w; in_ >> w && w != "of";) r.push_back(std::stoul(w));
    return r;
  }
  std::string word() {
    std::string w;
    in_ >> w;
    return w;
  }

private:
  std::istringstream in_;
  recorded& case_;

  argument of(std::string const& w) {
    if (w == "N") return varve::none;
    if (w == "T" || w == "F") return w == "T";
    if (w == "[") {
      argument::list all;
      for (std::string e; in_ >> e && e != "]";) all.push_back(of(e));
      return all;
    }
    if (w[0] == '\'') return unescaped(w.substr(1));
    if (w[0] == '~') return std::strtod(w.c_str() + 1, nullptr);
    if (w[0] == ':') return dtype_named(w.substr(1));
    auto const colon = w.find(':');
    if (colon != w.npos) return tensor_of(w.substr(0, colon), w.substr(colon + 1));
    if (w[0] != '!') return std::stoll(w);
    case_.expressible = false;
    return varve::none;
  }
  static std::string unescaped(std::string const& s) {
    std::string r;
    for (std::size_t k = 0; k < s.size(); ++k)
      if (s[k] == '%') r += static_cast<char>(std::stoi(s.substr(k + 1, 2), nullptr, 16)), k += 2;
      else r += s[k];
    return r;
  }
  argument tensor_of(std::string const& code, std::string const& layout) {
    static std::pair<char const*, dtype> const codes[] = {
        {"b", dtype::bool_},    {"u1", dtype::uint8},   {"i4", dtype::int32}, {"i8", dtype::int64},
        {"f4", dtype::float32}, {"f8", dtype::float64}, {"i1", dtype::int8},  {"i2", dtype::int16},
        {"f2", dtype::float16}, {"bf", dtype::bfloat16}};
    auto const slash = layout.find('/');
    std::string const shape = layout.substr(0, slash);
    if (std::count(shape.begin(), shape.end(), 'x') >= varve::max_rank) {
      case_.expressible = false;
      return varve::none; // nothing else is read of the line
    }
    dims const sizes = list_of_sizes(shape);
    tensor r;
    for (auto const& [name, type] : codes)
      if (code == name) r = tensor::empty(sizes, type);
    if (!r.defined()) { // a dtype that has no kernels
      case_.expressible = false;
      std::string rest;
      for (index_t k = 0; k < varve::numel(sizes).number(); ++k) in_ >> rest;
      return varve::none;
    }
    if (slash != layout.npos) {
      varve::layout l{sizes, list_of_sizes(layout.substr(slash + 1)), 0, true};
      index_t last = 0;
      for (int k = 0; k < sizes.n; ++k) last += (sizes[k] - 1) * l.strides[k];
      r = tensor::empty({last + 1}, r.dtype()).with_layout(l);
    }
    std::string n;
    for (index_t k = 0; k < r.numel(); ++k) {
      in_ >> n;
      if (r.dtype() == dtype::int64) static_cast<std::int64_t*>(r.raw())[offset_of(r, k)] = std::stoll(n);
      else set(r, k, std::strtod(n.c_str(), nullptr));
    }
    return r;
  }
  static index_t offset_of(tensor const& t, index_t position) {
    index_t offset = 0;
    for (int k = t.dim() - 1; k >= 0; --k) {
      offset += position % t.sizes()[k] * t.strides()[k];
      position /= t.sizes()[k];
    }
    return offset;
  }
};

inline std::vector<recorded> read(std::string const& path, std::string const& file) {
  std::vector<recorded> cases;
  std::ifstream in(path);
  std::string op;
  derivative* now = nullptr;
  for (std::string line; std::getline(in, line);) {
    auto const blank = line.find(' ');
    std::string const word = line.substr(0, blank), rest = line.substr(blank + 1);
    if (word == "operator") {
      op = rest;
      continue;
    }
    if (word == "case" || word == "refused") {
      cases.emplace_back();
      cases.back().op = op, cases.back().file = file, cases.back().number = std::stoi(rest);
      cases.back().refused = word == "refused";
      continue;
    }
    recorded& c = cases.back();
    value_reader r(rest, c);
    if (word == "x") c.arguments.push_back(r.read());
    else if (word == "k") {
      std::string const name = r.word();
      c.named.push_back({name, r.read()});
    } else if (word == "y" || word == "r") c.outputs.push_back(r.read());
    else if (word == "vjp") now = &c.vjp, c.vjp.outputs = r.numbers(), c.vjp.inputs = r.numbers();
    else if (word == "jvp") now = &c.jvp, c.jvp.inputs = r.numbers();
    else if (word == "c" || word == "d") now->directions.push_back(r.read());
    else if (word == "g" || word == "o") now->results.push_back(r.read());
    else throw std::runtime_error(path + ": what is " + word);
  }
  return cases;
}
} // namespace opinfo
