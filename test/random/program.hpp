// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Programs as data: what `generate.hpp` makes, `run.hpp` walks through with varve's operators, `shrink.hpp` makes
/// smaller and `print.hpp` writes as C++. Values have numbers that are unique in a program; a body sees what was there
/// where it stands, as a lambda does.
#include "../sample/value.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace random_programs {
using sample::values;
using varve::dims;
using varve::dtype;
using varve::index_t;
using varve::tensor;

struct row;
struct statement;

/// A function: of its parameters, and of the values around it.
struct block {
  std::vector<int> parameters;
  std::vector<statement> code;
  std::vector<int> results;
};
/// One call.
struct statement {
  row const* op = nullptr;   // of the table in operators.hpp
  std::vector<int> operands; // values
  std::vector<int> results;
  std::vector<dims> at; // axes, sizes, ...
  std::vector<double> numbers;
  std::vector<block> bodies; // of operators that carry functions
  bool stays = false;        // without it the program would mean another thing to each that runs it
};
/// A value that is there before the program runs.
struct input {
  dtype type = dtype::float64;
  dims sizes;
  std::vector<double> elements;
  sample::memory memory = sample::memory::row_major;
  bool expanded = false; // all elements of dimension 0 are one
  bool captured = false; // no argument
};
/// A function of the inputs that are not captured. The first is what derivatives are taken of.
struct program {
  std::vector<input> inputs; // values 0, 1, ...
  block body;                // its parameters are the inputs
  int count = 0;             // of values
  bool smooth = true;        // differences tell its derivative
  bool draws = false;        // random numbers
  bool turns_off = false;    // grad mode, which forward mode does not obey
  bool special = false;      // NaN, infinity, ... among its inputs
  bool hides = false;        // writes that autograd does not see: of no derivative
  bool lies = false;         // a reshape is written: a view or a copy as memory lies, which lanes change
};

/// Numbers that depend on a seed alone, on every machine.
struct numbers {
  std::uint64_t state;
  explicit numbers(std::uint64_t seed) : state(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// One of 0, ..., n - 1.
  int below(int n) { return n > 0 ? static_cast<int>(bits() % static_cast<std::uint64_t>(n)) : 0; }
  /// True once in n times.
  bool once_in(int n) { return below(n) == 0; }
  double between(double low, double high) { return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53; }
  template <class T>
  T const& of(std::vector<T> const& v) {
    return v[static_cast<std::size_t>(below(static_cast<int>(v.size())))];
  }
};

/// The tensor of an input.
inline tensor make(input const& in) {
  if (!in.expanded) return sample::from(in.elements, in.sizes, in.type, in.memory);
  dims row = in.sizes;
  row[0] = 1;
  index_t const n = varve::numel(row);
  tensor const one = sample::from({in.elements.begin(), in.elements.begin() + n}, row, in.type);
  return one.with_layout({in.sizes, varve::broadcast_strides(row, one.strides(), in.sizes), 0, true});
}
/// The arguments of a program, and its captured values, with the numbers of both.
struct given {
  values arguments, captured;
  std::vector<int> argument_ids, captured_ids;
};
inline given inputs_of(program const& p) {
  given g;
  for (std::size_t k = 0; k < p.inputs.size(); ++k) {
    bool const captured = p.inputs[k].captured;
    (captured ? g.captured : g.arguments).push_back(make(p.inputs[k]));
    (captured ? g.captured_ids : g.argument_ids).push_back(static_cast<int>(k));
  }
  return g;
}
/// Told of every statement before it runs, while somebody listens.
inline std::function<void(statement const&, values const&)> listener;
} // namespace random_programs
