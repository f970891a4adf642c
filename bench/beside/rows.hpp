// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Every operator on tensors, forwards and (where it has derivatives) backwards, in three sizes and the layouts that it
/// may meet: one text for all libraries. A program includes it behind its namespace `world`, which says what `tensor`
/// and `shape` are, fills tensors, calls the operators whose arguments differ between libraries, and pulls back; `lib`
/// is the namespace of the others. `bench/operators` runs the programs in turn and sets their lines side by side.
#include "timing.hpp"

#include <functional>
#include <vector>

namespace rows {
using world::shape, world::tensor;
using function = std::function<tensor(tensor const*)>;

/// A line: name, nanoseconds, a weighted sum of all elements, and the sum of their magnitudes.
inline void line(string const& name, double ns, std::vector<tensor> const& results) {
  double sum = 0, magnitude = 0;
  for (tensor const& r : results) {
    std::vector<double> const x = world::elements(r);
    for (std::size_t k = 0; k < x.size(); ++k)
      sum += static_cast<double>(1 + k % 7) * x[k], magnitude += std::fabs(x[k]);
  }
  print_line(name, ns, sum, magnitude);
}
inline void forward(string const& name, std::vector<tensor> const& in, function const& f) {
  if (!wanted(name)) return;
  double const ns = best([&] { tensor const r = f(in.data()); });
  line(name, ns, {f(in.data())});
}
inline void backward(string const& name, std::vector<tensor> const& in, function const& f) {
  if (!wanted(name + ", backwards")) return;
  tensor const y = f(in.data()), g = world::floats_like(y);
  world::differentiable const d(in, f, g);
  double const ns = best([&] { auto const r = d(); });
  line(name + ", backwards", ns, d());
}
inline void both(string const& name, std::vector<tensor> const& in, function const& f) {
  forward(name, in, f);
  backward(name, in, f);
}

/// A matrix in the layouts that an operand may have.
struct layout {
  char const* name;
  tensor value;
};
inline std::vector<layout> layouts(int64_t n, int64_t m, double scale, double offset) {
  return {{"contiguous", world::floats({n, m}, scale, offset)},
          {"transposed", world::transposed(world::floats({m, n}, scale, offset))},
          {"every second", world::strided(world::floats({n, 2 * m}, scale, offset))},
          {"expanded", world::expanded(world::floats({1, m}, scale, offset), {n, m})}};
}

// ---- elementwise
template <bool gradient = true>
void unary(string const& name, function const& f, double scale = 4, double offset = 0) {
  for (int64_t const n : sides)
    for (layout const& l : layouts(n, n, scale, offset)) {
      string const row = name + " " + text(n, n) + ", " + l.name;
      forward(row, {l.value}, f);
      if constexpr (gradient) backward(row, {l.value}, f);
    }
}
template <bool gradient = true>
void binary(string const& name, function const& f, double scale = 4, double offset = 0) {
  for (int64_t const n : sides) {
    tensor const a = world::floats({n, n}, scale, offset), b = world::floats({n, n}, 0.7 * scale, offset);
    std::vector<std::pair<string, std::vector<tensor>>> const cases = {
        {"contiguous", {a, b}},
        {"transposed", {a, world::transposed(b)}},
        {"every second", {a, world::strided(world::floats({n, 2 * n}, scale, offset))}},
        {"a row", {a, world::floats({n}, scale, offset)}},
        {"a column", {a, world::floats({n, 1}, scale, offset)}},
        {"outer", {world::floats({n, 1}, scale, offset), world::floats({n}, 0.7 * scale, offset)}}};
    for (auto const& [layout, in] : cases) {
      string const row = name + " " + text(n, n) + ", " + layout;
      forward(row, in, f);
      if constexpr (gradient) backward(row, in, f);
    }
  }
}
inline void elementwise() {
  unary("neg", [](tensor const* x) { return lib::neg(x[0]); });
  unary("abs", [](tensor const* x) { return lib::abs(x[0]); });
  unary<false>("sign", [](tensor const* x) { return lib::sign(x[0]); });
  unary("exp", [](tensor const* x) { return lib::exp(x[0]); });
  unary("expm1", [](tensor const* x) { return lib::expm1(x[0]); });
  unary("log", [](tensor const* x) { return lib::log(x[0]); }, 1, 2);
  unary("log1p", [](tensor const* x) { return lib::log1p(x[0]); }, 1, 2);
  unary("sqrt", [](tensor const* x) { return lib::sqrt(x[0]); }, 1, 2);
  unary("rsqrt", [](tensor const* x) { return lib::rsqrt(x[0]); }, 1, 2);
  unary("reciprocal", [](tensor const* x) { return lib::reciprocal(x[0]); }, 1, 2);
  unary("sin", [](tensor const* x) { return lib::sin(x[0]); });
  unary("cos", [](tensor const* x) { return lib::cos(x[0]); });
  unary("tanh", [](tensor const* x) { return lib::tanh(x[0]); });
  unary("sigmoid", [](tensor const* x) { return lib::sigmoid(x[0]); });
  unary("erf", [](tensor const* x) { return lib::erf(x[0]); });
  unary("relu", [](tensor const* x) { return lib::relu(x[0]); });
  unary("clamp", [](tensor const* x) { return lib::clamp(x[0], -0.5f, 0.5f); });
  unary("square", [](tensor const* x) { return lib::square(x[0]); });
  unary("pow 2.5", [](tensor const* x) { return lib::pow(x[0], 2.5f); }, 1, 2);
  unary("add 1.5", [](tensor const* x) { return lib::add(x[0], 1.5f); });
  unary("mul 1.5", [](tensor const* x) { return lib::mul(x[0], 1.5f); });
  unary("gelu", [](tensor const* x) { return lib::gelu(x[0]); });
  unary("gelu by tanh", [](tensor const* x) { return world::gelu_by_tanh(x[0]); });
  unary("silu", [](tensor const* x) { return lib::silu(x[0]); });
  unary("softplus", [](tensor const* x) { return lib::softplus(x[0]); });
  unary<false>("clone", [](tensor const* x) { return world::copy(x[0]); });
  binary("add", [](tensor const* x) { return lib::add(x[0], x[1]); });
  binary("sub", [](tensor const* x) { return lib::sub(x[0], x[1]); });
  binary("mul", [](tensor const* x) { return lib::mul(x[0], x[1]); });
  binary("div", [](tensor const* x) { return lib::div(x[0], x[1]); }, 1, 2);
  binary("pow", [](tensor const* x) { return lib::pow(x[0], x[1]); }, 1, 2);
  binary("maximum", [](tensor const* x) { return lib::maximum(x[0], x[1]); });
  binary("minimum", [](tensor const* x) { return lib::minimum(x[0], x[1]); });
  binary<false>("lt", [](tensor const* x) { return lib::lt(x[0], x[1]); });
  binary<false>("eq", [](tensor const* x) { return lib::eq(x[0], x[1]); });
  for (int64_t const n : sides) {
    tensor const a = world::floats({n, n}, 4, 0), b = world::floats({n, n}, 3, 0), zero = world::floats({1}, 0, 0);
    tensor const mask = lib::gt(a, b), row = world::floats({n}, 4, 0);
    string const size = " " + text(n, n);
    both("where" + size + ", contiguous", {a, b}, [=](tensor const* x) { return lib::where(mask, x[0], x[1]); });
    both("where" + size + ", a row", {a, row}, [=](tensor const* x) { return lib::where(mask, x[0], x[1]); });
    tensor const turned = world::transposed(mask);
    both("where" + size + ", transposed", {a, b}, [=](tensor const* x) { return lib::where(turned, x[0], x[1]); });
  }
}

// ---- reductions and what stands on them
inline void reductions() {
  using world::axes;
  for (int64_t const n : sides)
    for (layout const& l : layouts(n, n, 4, 0)) {
      string const row = " " + text(n, n) + ", " + l.name;
      both("sum" + row, {l.value}, [](tensor const* x) { return lib::sum(x[0]); });
      both("mean" + row, {l.value}, [](tensor const* x) { return lib::mean(x[0]); });
      both("amax" + row, {l.value}, [](tensor const* x) { return lib::amax(x[0]); });
      forward("argmax" + row, {l.value}, [](tensor const* x) { return lib::argmax(x[0]); });
      for (int const a : {0, 1}) {
        string const along = " axis " + std::to_string(a) + row;
        both("sum" + along, {l.value}, [=](tensor const* x) { return lib::sum(x[0], axes{a}); });
        both("mean" + along, {l.value}, [=](tensor const* x) { return lib::mean(x[0], axes{a}); });
        both("amax" + along, {l.value}, [=](tensor const* x) { return lib::amax(x[0], axes{a}); });
        both("amin" + along, {l.value}, [=](tensor const* x) { return lib::amin(x[0], axes{a}); });
        forward("argmax" + along, {l.value}, [=](tensor const* x) { return lib::argmax(x[0], a); });
        both("logsumexp" + along, {l.value}, [=](tensor const* x) { return lib::logsumexp(x[0], axes{a}); });
        both("softmax" + along, {l.value}, [=](tensor const* x) { return lib::softmax(x[0], a); });
        both("log_softmax" + along, {l.value}, [=](tensor const* x) { return lib::log_softmax(x[0], a); });
      }
      tensor const w = world::floats({n}, 1, 1), b = world::floats({n}, 1, 0);
      both("layer_norm" + row, {l.value, w, b},
           [=](tensor const* x) { return lib::layer_norm(x[0], shape{n}, x[1], x[2]); });
    }
  tensor const many = world::floats({8, 512, 512}, 4, 0);
  both("softmax 8x512x512", {many}, [](tensor const* x) { return lib::softmax(x[0], 2); });
}

// ---- moves of elements
inline void moves() {
  for (int64_t const n : sides) {
    string const size = " " + text(n, n);
    tensor const a = world::floats({n, n}, 4, 0), b = world::floats({n, n}, 3, 0), u = world::transposed(b);
    tensor const three = world::floats({n * n / 4, 3}, 4, 0), one = world::floats({n * n / 4, 1}, 4, 0);
    using list = std::vector<tensor>;
    for (int const axis : {0, 1}) {
      string const along = " axis " + std::to_string(axis) + size;
      both("cat" + along, {a, b}, [=](tensor const* x) { return lib::cat(list{x[0], x[1]}, axis); });
      both("cat" + along + ", transposed", {a, u}, [=](tensor const* x) { return lib::cat(list{x[0], x[1]}, axis); });
      both("stack" + along, {a, b}, [=](tensor const* x) { return lib::stack(list{x[0], x[1]}, axis); });
      tensor const at = world::longs({n, n}, n), turned = world::transposed(at);
      both("gather" + along, {a}, [=](tensor const* x) { return lib::gather(x[0], axis, at); });
      both("gather" + along + ", transposed", {u}, [=](tensor const* x) { return lib::gather(x[0], axis, turned); });
      both("scatter_add" + along, {a, b}, [=](tensor const* x) { return lib::scatter_add(x[0], axis, at, x[1]); });
      both("select" + along, {a}, [=](tensor const* x) { return world::copy(lib::select(x[0], axis, n / 2)); });
      both("slice" + along, {a},
           [=](tensor const* x) { return world::copy(lib::slice(x[0], axis, n / 8, n / 2 + n / 8, 1)); });
      both("every second" + along, {a}, [=](tensor const* x) { return world::copy(lib::slice(x[0], axis, 0, n, 2)); });
    }
    both("cat of 3 columns and 1" + size, {three, one}, [=](tensor const* x) { return lib::cat(list{x[0], x[1]}, 1); });
    both("cat of 8" + size, {a, b},
         [=](tensor const* x) { return lib::cat(list{x[0], x[1], x[0], x[1], x[0], x[1], x[0], x[1]}, 0); });
    tensor const rows = world::longs({n}, n);
    both("rows by index" + size, {a}, [=](tensor const* x) { return world::rows_by_index(x[0], rows); });
    forward("one_hot" + size, {rows}, [=](tensor const* x) { return lib::one_hot(x[0], n); });
    both("transpose" + size, {a}, [](tensor const* x) { return world::copy(world::transposed(x[0])); });
    both("expand" + size, {world::floats({n}, 4, 0)},
         [=](tensor const* x) { return world::copy(world::expanded(x[0], {n, n})); });
    both("permute 0312 of 4x8x" + text(n / 4, n / 4), {world::floats({4, 8, n / 4, n / 4}, 4, 0)},
         [](tensor const* x) { return world::copy(lib::permute(x[0], shape{0, 3, 1, 2})); });
    forward("zeros" + size, {}, [=](tensor const*) { return lib::zeros(shape{n, n}); });
    forward("full" + size, {}, [=](tensor const*) { return lib::full(shape{n, n}, 0.5f); });
    forward("ones_like" + size, {a}, [](tensor const* x) { return lib::ones_like(x[0]); });
    forward("arange" + size, {}, [=](tensor const*) { return world::arange(n * n); });
    forward("eye" + size, {}, [=](tensor const*) { return lib::eye(n); });
    tensor const d = world::as_double(a), i = world::as_long(a), m = lib::gt(a, b);
    forward("float32 to float64" + size, {a}, [](tensor const* x) { return world::as_double(x[0]); });
    forward("float64 to float32" + size, {d}, [](tensor const* x) { return world::as_float(x[0]); });
    forward("float32 to int64" + size, {a}, [](tensor const* x) { return world::as_long(x[0]); });
    forward("int64 to float32" + size, {i}, [](tensor const* x) { return world::as_float(x[0]); });
    forward("bool to float32" + size, {m}, [](tensor const* x) { return world::as_float(x[0]); });
    forward("float32 to bool" + size, {a}, [](tensor const* x) { return world::as_bool(x[0]); });
  }
}

// ---- writes in place, other dtypes
inline void writes() {
  for (int64_t const n : sides) {
    string const size = " " + text(n, n);
    tensor const a = world::floats({n, n}, 4, 0), b = world::floats({n, n}, 1e-6, 0), row = world::floats({n}, 1e-6, 0);
    tensor const u = world::transposed(b), one = world::floats({n, n}, 0, 1);
    forward("add_" + size, {}, [=](tensor const*) { return world::add_in_place(world::copy(a), b); });
    forward("add_" + size + ", a row", {}, [=](tensor const*) { return world::add_in_place(world::copy(a), row); });
    forward("add_" + size + ", transposed", {}, [=](tensor const*) { return world::add_in_place(world::copy(a), u); });
    forward("mul_" + size, {}, [=](tensor const*) { return world::mul_in_place(world::copy(a), one); });
  }
}
inline void other_dtypes() {
  for (int64_t const n : sides) {
    string const size = " " + text(n, n);
    tensor const a = world::as_double(world::floats({n, n}, 1, 2)), b = world::as_double(world::floats({n, n}, 0.7, 2));
    string const d = ", float64";
    both("add" + size + d, {a, b}, [](tensor const* x) { return lib::add(x[0], x[1]); });
    both("mul" + size + d, {a, b}, [](tensor const* x) { return lib::mul(x[0], x[1]); });
    both("exp" + size + d, {a}, [](tensor const* x) { return lib::exp(x[0]); });
    both("log" + size + d, {a}, [](tensor const* x) { return lib::log(x[0]); });
    both("tanh" + size + d, {a}, [](tensor const* x) { return lib::tanh(x[0]); });
    both("pow" + size + d, {a, b}, [](tensor const* x) { return lib::pow(x[0], x[1]); });
    both("pow 2.5" + size + d, {a}, [](tensor const* x) { return lib::pow(x[0], 2.5); });
    both("sum" + size + d, {a}, [](tensor const* x) { return lib::sum(x[0]); });
    both("softmax" + size + d, {a}, [](tensor const* x) { return lib::softmax(x[0], 1); });
    tensor const i = world::longs({n, n}, 1000), j = world::longs({n, n}, 77);
    forward("add" + size + ", int64", {i, j}, [](tensor const* x) { return lib::add(x[0], x[1]); });
    forward("mul" + size + ", int64", {i, j}, [](tensor const* x) { return lib::mul(x[0], x[1]); });
    forward("sum" + size + ", int64", {i}, [](tensor const* x) { return lib::sum(x[0]); });
    forward("lt" + size + ", int64", {i, j}, [](tensor const* x) { return lib::lt(x[0], x[1]); });
    forward("add" + size + ", float32 and float64", {world::as_float(a), b},
            [](tensor const* x) { return lib::add(x[0], x[1]); });
  }
}

// ---- products
inline void products() {
  auto const mm = [](tensor const* x) { return lib::matmul(x[0], x[1]); };
  for (int64_t const n : {8, 100, 512}) {
    tensor const a = world::floats({n, n}, 1, 0), b = world::floats({n, n}, 1, 0);
    string const row = "matmul " + text(n, n);
    both(row + ", contiguous", {a, b}, mm);
    both(row + ", transposed", {a, world::transposed(b)}, mm);
    both(row + ", the first transposed", {world::transposed(a), b}, mm);
    both(row + ", by a vector", {a, world::floats({n}, 1, 0)}, mm);
    both(row + ", expanded", {a, world::expanded(world::floats({n, 1}, 1, 0), {n, n})}, mm);
  }
  auto const product = [&](int64_t m, int64_t k, int64_t n) {
    both("matmul " + text(m, k) + "x" + std::to_string(n), {world::floats({m, k}, 1, 0), world::floats({k, n}, 1, 0)},
         mm);
  };
  product(3, 1000, 3), product(1000, 3, 1000), product(10000, 16, 16), product(16, 10000, 16), product(1, 1000, 1000),
      product(1000, 1000, 1), product(64, 784, 128);
  both("bmm 64x32x32x32", {world::floats({64, 32, 32}, 1, 0), world::floats({64, 32, 32}, 1, 0)}, mm);
  both("bmm 1000x4x4x4", {world::floats({1000, 4, 4}, 1, 0), world::floats({1000, 4, 4}, 1, 0)}, mm);
  both("bmm q k^T 8x512x64", {world::floats({8, 512, 64}, 1, 0), world::floats({8, 512, 64}, 1, 0)},
       [](tensor const* x) { return lib::matmul(x[0], world::transposed(x[1])); });
  both("bmm s v 8x512x512x64", {world::floats({8, 512, 512}, 1, 0), world::floats({8, 512, 64}, 1, 0)}, mm);
}
inline void convolutions() {
  struct row {
    char const* name;
    shape x, w;
    int64_t stride, padding, groups;
  };
  row const all[] = {{"3x3 2x3x16x16, 8", {2, 3, 16, 16}, {8, 3, 3, 3}, 1, 1, 1},
                     {"3x3 8x16x32x32, 32", {8, 16, 32, 32}, {32, 16, 3, 3}, 1, 1, 1},
                     {"3x3 8x64x14x14, 64", {8, 64, 14, 14}, {64, 64, 3, 3}, 1, 1, 1},
                     {"3x3 8x16x32x32, 32, stride 2", {8, 16, 32, 32}, {32, 16, 3, 3}, 2, 1, 1},
                     {"1x1 8x16x32x32, 32", {8, 16, 32, 32}, {32, 16, 1, 1}, 1, 0, 1},
                     {"1x1 8x64x14x14, 64", {8, 64, 14, 14}, {64, 64, 1, 1}, 1, 0, 1},
                     {"depthwise 3x3 8x32x32x32", {8, 32, 32, 32}, {32, 1, 3, 3}, 1, 1, 32},
                     {"depthwise 3x3 8x32x32x32, stride 2", {8, 32, 32, 32}, {32, 1, 3, 3}, 2, 1, 32},
                     {"4 groups 3x3 8x32x32x32, 32", {8, 32, 32, 32}, {32, 8, 3, 3}, 1, 1, 4},
                     {"5x5 8x3x32x32, 16", {8, 3, 32, 32}, {16, 3, 5, 5}, 1, 2, 1}};
  for (row const& r : all)
    both(string("conv2d ") + r.name, {world::floats(r.x, 1, 0), world::floats(r.w, 1, 0)},
         [r](tensor const* x) { return world::conv2d(x[0], x[1], r.stride, r.padding, r.groups); });
  both("conv1d 5 8x32x256, 64", {world::floats({8, 32, 256}, 1, 0), world::floats({64, 32, 5}, 1, 0)},
       [](tensor const* x) { return world::conv1d(x[0], x[1]); });
  both("conv_transpose2d 3x3 8x64x14x14, 32, stride 2",
       {world::floats({8, 64, 14, 14}, 1, 0), world::floats({64, 32, 3, 3}, 1, 0)},
       [](tensor const* x) { return world::conv_transpose2d(x[0], x[1], 2); });
}

} // namespace rows

#include "families.hpp"

namespace rows {
inline int run(int argc, char** argv) {
  read_arguments(argc, argv);
  elementwise();
  reductions();
  moves();
  writes();
  other_dtypes();
  products();
  convolutions();
  families();
  return 0;
}
} // namespace rows
