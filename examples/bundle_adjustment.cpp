// SPDX-License-Identifier: BSL-1.0
// Bundle adjustment: the derivatives of every reprojection error by its camera and its point, from one generic
// function: on tensors, all observations at once, and fused, in blocks. Both against derivatives made by hand,
// rotations by angles around 0 included; then the gradient of the whole problem.
// Usage: bundle_adjustment [problem in the format of "Bundle Adjustment in the Large"]
// output: 1013 observations of 120 points by 16 cameras, half the sum of squares 6[.]334431e[+]04
// output: on tensors: greatest relative error [0-9.]+e-(09|[1-9][0-9]),
// output: fused: greatest relative error [0-9.]+e-(09|[1-9][0-9]),
// output: angles 0 to 0[.]1, on tensors: greatest relative error [0-9.]+e-(09|[1-9][0-9]),
// output: angles 0 to 0[.]1, fused: greatest relative error [0-9.]+e-(09|[1-9][0-9]),
// output: gradient by cameras [0-9.]+e[+][0-9]+, by points [0-9.]+e[+][0-9]+
// output: all derivatives within 1e-9
#include "support/bal.hpp"
#include "support/snavely.hpp"

#include <varve/varve.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>

namespace vv = varve;

constexpr vv::index_t inputs = reprojection_size, outputs = 2, per_observation = inputs * outputs, block = 64;
constexpr auto jacobians = vv::vmap(vv::jacrev(reprojection_error));
constexpr auto fused_jacobians = vv::fuse(jacobians);

using numbers = std::vector<double>;

vv::tensor matrix(numbers const& v, vv::index_t columns) {
  return vv::tensor::from_data(v.data(), {static_cast<vv::index_t>(v.size()) / columns, columns});
}
numbers elements(vv::tensor const& t) {
  vv::tensor const c = vv::contiguous(t);
  return numbers(c.data<double>(), c.data<double>() + c.numel());
}

// ---- three ways to all Jacobians; p has rows of 12 numbers, seen of 2
// -------------------------------------------------------------------------------
numbers on_tensors(numbers const& p, numbers const& seen) {
  return elements(jacobians(matrix(p, inputs), matrix(seen, outputs)));
}
numbers fused(numbers const& p, numbers const& seen) {
  vv::index_t const n = static_cast<vv::index_t>(seen.size()) / outputs;
  numbers r(static_cast<std::size_t>(n * per_observation));
  vv::array<double, block, inputs> a{};
  vv::array<double, block, outputs> b{};
  vv::array<double, block, outputs, inputs> j;
  for (vv::index_t k = 0; k < n; k += block) {
    vv::index_t const count =
        std::min(block, n - k); // the last block may be filled in part; what else it holds is not read
    std::copy_n(p.data() + k * inputs, count * inputs, a.data);
    std::copy_n(seen.data() + k * outputs, count * outputs, b.data);
    fused_jacobians.into(j)(a, b);
    std::copy_n(j.data, count * per_observation, r.data() + k * per_observation);
  }
  return r;
}
numbers by_hand(numbers const& p) {
  numbers r(p.size() * outputs);
  for (std::size_t k = 0; k < p.size() / inputs; ++k)
    reprojection_jacobian_by_hand<double>(&p[k * inputs], &r[k * per_observation]);
  return r;
}

// ---- how well they agree
// --------------------------------------------------------------------------------------------------------------------
/// Errors relative to the derivative; to a millionth of the greatest of its row where more than that cancels.
bool compare(char const* name, numbers const& found, numbers const& expected) {
  double relative = 0, absolute = 0;
  for (std::size_t row = 0; row < expected.size(); row += inputs) {
    double greatest = 0;
    for (std::size_t k = row; k < row + inputs; ++k) greatest = std::max(greatest, std::abs(expected[k]));
    for (std::size_t k = row; k < row + inputs; ++k) {
      double const error = std::abs(found[k] - expected[k]);
      absolute = std::max(absolute, error);
      relative = std::max(relative,
                          std::isfinite(error) ? error / std::max(std::abs(expected[k]), 1e-6 * greatest) : HUGE_VAL);
    }
  }
  std::printf("%s: greatest relative error %.1e, absolute %.1e\n", name, relative, absolute);
  return found.size() == expected.size() && relative < 1e-9;
}

double norm(numbers const& v) {
  double s = 0;
  for (double x : v) s += x * x;
  return std::sqrt(s);
}

int main(int argc, char** argv) try {
  bal_problem const problem = load_bal(argc > 1 ? argv[1] : VARVE_EXAMPLE_DATA "/problem-16-120-pre.txt");
  numbers const p = problem.parameters();
  vv::tensor const seen = matrix(problem.seen, outputs);
  auto const half_sum_of_squares = [](auto const& q, auto const& s) {
    auto const r = vv::vmap(reprojection_error)(q, s);
    return 0.5 * vv::sum(r * r);
  };
  std::printf("%zu observations of %zu points by %zu cameras, half the sum of squares %.6e\n", problem.size(),
              problem.points.size() / problem.point_size, problem.cameras.size() / problem.camera_size,
              half_sum_of_squares(matrix(p, inputs), seen).item<double>());

  numbers const expected = by_hand(p);
  bool good = compare("on tensors", on_tensors(p, problem.seen), expected);
  good = compare("fused", fused(p, problem.seen), expected) && good;

  // Rotations that are hardly any: the first cameras seen, turned about their axes by angles of 0, 1e-12, 1e-11, ...,
  // 0.1.
  numbers turned, turned_seen;
  for (std::size_t k = 0; k < 13; ++k) {
    double const* const q = &p[k % problem.size() * inputs];
    double const angle = k == 0 ? 0 : std::pow(10, static_cast<double>(k) - 13), present = norm(numbers(q, q + 3));
    for (std::size_t i = 0; i < inputs; ++i) turned.push_back(i < 3 ? q[i] * angle / present : q[i]);
    for (std::size_t i = 0; i < outputs; ++i) turned_seen.push_back(problem.seen[k % problem.size() * outputs + i]);
  }
  numbers const expected_turned = by_hand(turned);
  good = compare("angles 0 to 0.1, on tensors", on_tensors(turned, turned_seen), expected_turned) && good;
  good = compare("angles 0 to 0.1, fused", fused(turned, turned_seen), expected_turned) && good;

  // The gradient of the whole by what is shared: the rows of the cameras and of the points that the observations name.
  auto const rows = [](std::vector<std::size_t> const& of, vv::index_t columns) {
    std::vector<std::int64_t> const index(of.begin(), of.end());
    auto const n = static_cast<vv::index_t>(index.size());
    return vv::contiguous(vv::expand(vv::tensor::from_data(index.data(), {n, 1}), vv::dims{n, columns}));
  };
  vv::tensor const camera_of = rows(problem.camera_of, 9), point_of = rows(problem.point_of, 3);
  auto const whole = [&](auto const& cameras, auto const& points) {
    auto const q =
        vv::cat(std::tuple{vv::gather(cameras, vv::axis<0>, camera_of), vv::gather(points, vv::axis<0>, point_of)},
                vv::axis<1>);
    return half_sum_of_squares(q, seen);
  };
  auto const [by_cameras, by_points] = vv::grad<0, 1>(whole)(matrix(problem.cameras, 9), matrix(problem.points, 3));
  numbers const error = elements(vv::vmap(reprojection_error)(matrix(p, inputs), seen));
  numbers cameras(problem.cameras.size()), points(problem.points.size()); // J^T r
  for (std::size_t k = 0; k < problem.size(); ++k)
    for (std::size_t row = 0; row < 2; ++row)
      for (std::size_t i = 0; i < 12; ++i)
        (i < 9 ? cameras[problem.camera_of[k] * 9 + i] : points[problem.point_of[k] * 3 + i - 9]) +=
            expected[k * 24 + row * 12 + i] * error[k * 2 + row];
  numbers const found_cameras = elements(by_cameras), found_points = elements(by_points);
  double difference = 0; // sums of large numbers of both signs: relative to the norm
  for (std::size_t k = 0; k < cameras.size(); ++k)
    difference = std::max(difference, std::abs(found_cameras[k] - cameras[k]) / norm(cameras));
  for (std::size_t k = 0; k < points.size(); ++k)
    difference = std::max(difference, std::abs(found_points[k] - points[k]) / norm(points));
  good = good && difference < 1e-9;
  std::printf("gradient by cameras %.6e, by points %.6e: %s\n", norm(found_cameras), norm(found_points),
              good ? "all derivatives within 1e-9" : "derivatives differ");
  return good ? 0 : 1;
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
