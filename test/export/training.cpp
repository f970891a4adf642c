// SPDX-License-Identifier: BSL-1.0
// The digits network trained by each backend of `compile`: the losses are those of operators called one by one, step
// by step.
#include "../../examples/support/digits_csv.hpp"
#include "../sample/value.hpp"

#include <varve/export/cpp_backend.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <filesystem>
#include <varve_test.hpp>

namespace vv = varve;
using vv::tensor;

namespace {
constexpr vv::index_t inputs = 64, hidden = 32, classes = 10, batch = 32;
constexpr int steps = 60;
constexpr float rate = 0.5f;

auto const loss = [](auto const& w1, auto const& b1, auto const& w2, auto const& b2, auto const& x, auto const& y) {
  auto const logits = vv::matmul(vv::tanh(vv::matmul(x, w1) + b1), w2) + b2;
  return -vv::mean(vv::sum(y * vv::log_softmax(logits, vv::axis<-1>), vv::axis<-1>));
};
auto const train_step = [](auto const& w1, auto const& b1, auto const& w2, auto const& b2, auto const& x,
                           auto const& y) {
  auto const [value, g] = vv::value_and_grad<0, 1, 2, 3>(loss)(w1, b1, w2, b2, x, y);
  return std::tuple(value, w1 - rate * std::get<0>(g), b1 - rate * std::get<1>(g), w2 - rate * std::get<2>(g),
                    b2 - rate * std::get<3>(g));
};
struct batches {
  digit_set const set = load_digits(VARVE_TEST_DIR "/../examples/data/digits.csv");
  tensor x(int step) const {
    tensor const r = tensor::empty({batch, inputs}, vv::dtype::float32);
    for (vv::index_t k = 0; k < batch * inputs; ++k)
      r.data<float>()[k] = set.pixels[static_cast<std::size_t>(first(step) * inputs + k)];
    return r;
  }
  tensor y(int step) const {
    tensor const r = vv::zeros({batch, classes}, vv::dtype::float32);
    for (vv::index_t k = 0; k < batch; ++k)
      r.data<float>()[k * classes + set.labels[static_cast<std::size_t>(first(step) + k)]] = 1;
    return r;
  }
  vv::index_t first(int step) const { return step * batch % (static_cast<vv::index_t>(set.size()) - batch); }
};
std::vector<tensor> start() {
  auto const waves = [](vv::dims const& sizes, double scale) {
    tensor const r = tensor::empty(sizes, vv::dtype::float32);
    for (vv::index_t k = 0; k < r.numel(); ++k)
      r.data<float>()[k] = static_cast<float>(scale * std::sin(12.9898 * static_cast<double>(k + 1)));
    return r;
  };
  return {waves({inputs, hidden}, 0.1), waves({hidden}, 0), waves({hidden, classes}, 0.2), waves({classes}, 0)};
}
/// The losses of a run whose gradients come by `backward()`.
template <class F>
std::vector<double> trained_by_backward(batches const& data, F const& f) {
  std::vector<tensor> p = start();
  std::vector<double> r;
  for (tensor const& t : p) t.requires_grad_();
  for (int k = 0; k < steps; ++k) {
    tensor const value = f(p[0], p[1], p[2], p[3], data.x(k), data.y(k));
    value.backward();
    r.push_back(static_cast<double>(value.template item<float>()));
    vv::no_grad const off;
    for (tensor& t : p) vv::sub_(t, t.grad() * rate), t.zero_grad();
  }
  return r;
}
/// ... of one whose step is a function of its own.
template <class F>
std::vector<double> trained_by_steps(batches const& data, F const& f) {
  std::vector<tensor> p = start();
  std::vector<double> r;
  for (int k = 0; k < steps; ++k) {
    tensor value;
    std::tie(value, p[0], p[1], p[2], p[3]) = f(p[0], p[1], p[2], p[3], data.x(k), data.y(k));
    r.push_back(static_cast<double>(value.template item<float>()));
  }
  return r;
}
double largest_difference(std::vector<double> const& a, std::vector<double> const& b) {
  double r = a.size() == b.size() ? 0 : HUGE_VAL;
  for (std::size_t k = 0; k < a.size(); ++k) r = std::fmax(r, std::fabs(a[k] - b[k]) / (1 + std::fabs(b[k])));
  return r;
}
} // namespace

TEST_CASE("every backend trains the digits network as eager operators do, step by step", "[export][aot][cpp]") {
  batches const data;
  std::string place = (std::filesystem::temp_directory_path() / "varve_train_XXXXXX").string();
  REQUIRE(::mkdtemp(place.data()));
  auto const native =
      vv::backends::cpp.with({.flags = {"-O1"}, .cache = place, .include = VARVE_TEST_DIR "/../include", .wait = true});
  auto const before = vv::backends::cpp_status();
  std::vector<double> const backward = trained_by_backward(data, loss), stepped = trained_by_steps(data, train_step);
  CHECK(backward.back() < 0.5 * backward.front());
  CHECK(largest_difference(stepped, backward) < 1e-6);
  CHECK(largest_difference(trained_by_backward(data, vv::compile(loss, vv::backends::aot_eager)), backward) < 1e-6);
  CHECK(largest_difference(trained_by_backward(data, vv::compile(loss, vv::backends::fused)), backward) < 1e-6);
  CHECK(largest_difference(trained_by_backward(data, vv::compile(loss, native)), backward) < 1e-6);
  CHECK(largest_difference(trained_by_steps(data, vv::compile(train_step, vv::backends::aot_eager)), stepped) < 1e-6);
  CHECK(largest_difference(trained_by_steps(data, vv::compile(train_step, vv::backends::fused)), stepped) < 1e-6);
  CHECK(largest_difference(trained_by_steps(data, vv::compile(train_step, native)), stepped) < 1e-6);
  CHECK(vv::backends::cpp_status().fused == before.fused);
  CHECK(vv::backends::cpp_status().compiled == before.compiled + 3);
  std::filesystem::remove_all(place);
}
