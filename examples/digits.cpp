// SPDX-License-Identifier: BSL-1.0
// Trains a network on the UCI digits twice with one text: fused by the compiler, and on run-time tensors.
// Usage: digits [folder for the files it writes]
// output: fused: accuracy 0\.9[0-9]
// output: tensors: accuracy 0\.9[0-9]
// output: largest difference of the losses, step by step: [0-9.e-]+ \(allowed 1e-4\)
#include "support/digits_csv.hpp"
#include "support/line_chart.hpp"

#include <varve/varve.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <random>
#include <unistd.h>

namespace vv = varve;

// --- the program, once
// ------------------------------------------------------------------------------------------------------------
constexpr auto network = [](auto const& w1, auto const& b1, auto const& w2, auto const& b2, auto const& x) {
  return vv::matmul(vv::tanh(vv::matmul(x, w1) + b1), w2) + b2;
};
constexpr auto loss = [](auto const& w1, auto const& b1, auto const& w2, auto const& b2, auto const& x,
                         auto const& y) { // mean cross entropy of a batch
  return -vv::mean(vv::sum(y * vv::log_softmax(network(w1, b1, w2, b2, x), vv::axis<-1>), vv::axis<-1>));
};
constexpr auto train_step = [](auto const& w1, auto const& b1, auto const& w2, auto const& b2, auto const& x,
                               auto const& y, auto const& rate) {
  auto const [value, g] = vv::value_and_grad<0, 1, 2, 3>(loss)(w1, b1, w2, b2, x, y);
  return std::tuple(value, w1 - rate * std::get<0>(g), b1 - rate * std::get<1>(g), w2 - rate * std::get<2>(g),
                    b2 - rate * std::get<3>(g));
};

constexpr vv::index_t inputs = 64, hidden = 32, classes = 10, batch = 32, train_rows = 1437, test_rows = 360;
constexpr int epochs = 30;
template <vv::index_t... D>
using floats = vv::array<float, D...>;

constexpr auto fused_step = vv::fuse(train_step); // one straight-line program, found by the compiler
constexpr auto graph = vv::trace(train_step, vv::spec<float, inputs, hidden>, vv::spec<float, hidden>,
                                 vv::spec<float, hidden, classes>, vv::spec<float, classes>,
                                 vv::spec<float, batch, inputs>, vv::spec<float, batch, classes>, vv::spec<float>);
static_assert(graph.count(vv::tanh) == 1, "the gradient needs no second tanh");

// --- modes: interpreters of every operator
// ------------------------------------------------------------------------------------------
struct counting : vv::dispatch_mode<counting> {
  int calls = 0;
  auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};
struct logging : vv::dispatch_mode<logging> {
  std::string log;
  auto process(auto op, auto const&... args) {
    log += std::string("    ") + op.name() + "(";
    vv::for_each_value(
        [&](auto const& v) { log += (log.back() == '(' ? "" : ", ") + vv::to_string(vv::to_dims(vv::shape_of(v))); },
        args...);
    auto const result = op(args...);
    log += ") -> " + vv::to_string(vv::to_dims(vv::shape_of(result))) + "\n";
    return result;
  }
};

// --- the two runs
// --------------------------------------------------------------------------------------------------------------------
struct parameters {
  floats<inputs, hidden> w1;
  floats<hidden> b1;
  floats<hidden, classes> w2;
  floats<classes> b2;
};
struct report {
  std::vector<double> losses;
  double microseconds_per_step = 0, accuracy = 0;
};

vv::tensor as_tensor(auto const& a) { return vv::tensor::from_data(a.data, vv::to_dims(vv::shape_of(a))); }

double accuracy(vv::tensor const& w1, vv::tensor const& b1, vv::tensor const& w2, vv::tensor const& b2,
                digit_set const& set) {
  vv::tensor const x = vv::tensor::from_data(set.pixels.data() + train_rows * inputs, {test_rows, inputs});
  vv::tensor const guess = vv::argmax(network(w1, b1, w2, b2, x), 1);
  int right = 0;
  for (vv::index_t k = 0; k < test_rows; ++k)
    right += guess.data<std::int64_t>()[k] == set.labels[static_cast<std::size_t>(train_rows + k)];
  return right / static_cast<double>(test_rows);
}

/// Rows in the order of one epoch, the same for both runs.
std::vector<std::size_t> epoch_order(int epoch) {
  std::vector<std::size_t> rows(train_rows);
  std::iota(rows.begin(), rows.end(), 0);
  std::mt19937 random(static_cast<unsigned>(epoch));
  for (std::size_t k = rows.size() - 1; k > 0; --k) std::swap(rows[k], rows[random() % (k + 1)]);
  return rows;
}
void fill_batch(digit_set const& set, std::size_t const* rows, float* x, float* y) {
  std::fill(y, y + batch * classes, 0.0f);
  for (vv::index_t k = 0; k < batch; ++k) {
    std::copy_n(set.pixels.data() + rows[k] * inputs, inputs, x + k * inputs);
    y[k * classes + set.labels[rows[k]]] = 1;
  }
}
void progress(char const* name, int epoch, double value) {
  if (!isatty(1)) return;
  int const done = 30 * (epoch + 1) / epochs;
  std::printf("\r%-8s [%-30s] loss %.4f%s", name, std::string(static_cast<std::size_t>(done), '#').c_str(), value,
              epoch + 1 == epochs ? "\n" : "");
  std::fflush(stdout);
}
float rate_of(int epoch) { return 0.5f / (1.0f + 0.05f * static_cast<float>(epoch)); }

/// Runs `step(x, y, rate)`, which trains on one batch and gives its loss, over all epochs.
template <class Step>
report train(char const* name, digit_set const& set, Step step) {
  static floats<batch, inputs> x;
  static floats<batch, classes> y;
  report r;
  double seconds = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    auto const rows = epoch_order(epoch);
    for (std::size_t k = 0; k + batch <= rows.size(); k += batch) {
      fill_batch(set, rows.data() + k, x.data, y.data);
      auto const start = std::chrono::steady_clock::now();
      r.losses.push_back(step(x, y, rate_of(epoch)));
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    progress(name, epoch, r.losses.back());
  }
  r.microseconds_per_step = 1e6 * seconds / static_cast<double>(r.losses.size());
  return r;
}

report train_fused(parameters p, digit_set const& set) {
  report r = train("fused", set, [&](auto const& x, auto const& y, float rate) {
    float value;
    std::tie(value, p.w1, p.b1, p.w2, p.b2) = fused_step(p.w1, p.b1, p.w2, p.b2, x, y, rate);
    return value;
  });
  r.accuracy = accuracy(as_tensor(p.w1), as_tensor(p.b1), as_tensor(p.w2), as_tensor(p.b2), set);
  return r;
}
report train_tensors(parameters const& p, digit_set const& set) {
  vv::tensor w1 = as_tensor(p.w1), b1 = as_tensor(p.b1), w2 = as_tensor(p.w2), b2 = as_tensor(p.b2);
  report r = train("tensors", set, [&](auto const& x, auto const& y, float rate) {
    vv::tensor value;
    std::tie(value, w1, b1, w2, b2) = train_step(w1, b1, w2, b2, as_tensor(x), as_tensor(y), rate);
    return value.item<float>();
  });
  r.accuracy = accuracy(w1, b1, w2, b2, set);
  return r;
}

/// One step on tensors under two modes, and the norm of each example's own gradient.
void observe(parameters const& p, digit_set const& set) {
  floats<batch, inputs> x;
  floats<batch, classes> y;
  fill_batch(set, epoch_order(0).data(), x.data, y.data);
  vv::tensor const w1 = as_tensor(p.w1), b1 = as_tensor(p.b1), w2 = as_tensor(p.w2), b2 = as_tensor(p.b2),
                   tx = as_tensor(x), ty = as_tensor(y);
  counting count;
  logging log;
  {
    vv::mode_guard const counts{count};
    vv::mode_guard const logs{log};
    train_step(w1, b1, w2, b2, tx, ty, 0.5f);
  }
  std::printf("\none step on tensors calls %d operators; the first of the log:\n", count.calls);
  std::size_t end = 0;
  for (int line = 0; line < 8; ++line) end = log.log.find('\n', end) + 1;
  std::printf("%s    ...\n", log.log.substr(0, end).c_str());

  constexpr auto one_example = [](auto const& w1, auto const& b1, auto const& w2, auto const& b2, auto const& x,
                                  auto const& y) { // x and y: one row
    return -vv::sum(y * vv::log_softmax(network(w1, b1, w2, b2, x), vv::axis<-1>));
  };
  auto const each = vv::vmap(vv::grad(one_example),
                             vv::in_dims<vv::none, vv::none, vv::none, vv::none, 0, 0>)(w1, b1, w2, b2, tx, ty);
  vv::tensor const norms = vv::sqrt(vv::sum(each * each, vv::axis<1, 2>));
  std::printf("\nnorms of the per-example gradients of w1 (shape %s), first eight:",
              vv::to_string(each.sizes()).c_str());
  for (int k = 0; k < 8; ++k) std::printf(" %.3f", norms.data<float>()[k]);
  std::printf("\n");
}

void show_graph(std::string const& folder) {
  std::string const text = vv::to_string(graph);
  std::size_t begin = 0, lines = 0;
  for (char c : text) lines += c == '\n';
  std::printf("\nthe traced step has %d operations; the compiler's program, abridged:\n", graph.operations());
  for (std::size_t k = 0; k < lines; ++k) {
    std::size_t const end = text.find('\n', begin);
    if (k < 13 || k + 4 > lines) std::printf("    %s\n", text.substr(begin, end - begin).c_str());
    else if (k == 13) std::printf("    ...\n");
    begin = end + 1;
  }
  std::ofstream dot(folder + "/digits.dot");
  if (!(dot << vv::to_dot(graph) << std::flush)) throw std::runtime_error(folder + "/digits.dot: cannot be written");
}

int main(int argc, char** argv) try {
  std::string const folder = argc > 1 ? argv[1] : ".";
  std::filesystem::create_directories(folder);
  digit_set const set = load_digits(std::string(VARVE_EXAMPLE_DATA) + "/digits.csv");
  if (set.size() != train_rows + test_rows)
    throw std::runtime_error("digits.csv: " + std::to_string(train_rows + test_rows) + " rows expected, " +
                             std::to_string(set.size()) + " found");
  vv::generator random{7};
  parameters start{
      vv::randn<float, inputs, hidden>(random) * 0.125f, {}, vv::randn<float, hidden, classes>(random) * 0.17f, {}};

  report const fused = train_fused(start, set);
  report const tensors = train_tensors(start, set);
  double difference = 0;
  for (std::size_t k = 0; k < fused.losses.size(); ++k)
    difference = std::max(difference, std::abs(fused.losses[k] - tensors.losses[k]));
  std::printf("\nfused: accuracy %.3f, %.1f us a step\n", fused.accuracy, fused.microseconds_per_step);
  std::printf("tensors: accuracy %.3f, %.1f us a step\n", tensors.accuracy, tensors.microseconds_per_step);
  std::printf("largest difference of the losses, step by step: %.1e (allowed 1e-4)\n", difference);

  observe(start, set);
  show_graph(folder);
  std::vector<curve> curves{{"fused at compile time", "#1f6fb2", {}, false}, {"run-time tensors", "#e07b39", {}, true}};
  std::size_t const per_epoch = fused.losses.size() / epochs; // a point per epoch: single batches scatter
  for (std::size_t e = 0; e < epochs; ++e)
    for (auto [c, r] : {std::pair{&curves[0], &fused}, std::pair{&curves[1], &tensors}})
      c->y.push_back(std::accumulate(r->losses.begin() + static_cast<long>(e * per_epoch),
                                     r->losses.begin() + static_cast<long>((e + 1) * per_epoch), 0.0) /
                     static_cast<double>(per_epoch));
  save_line_chart(folder + "/digits.svg", "UCI digits, 64-32-10 network: training loss", "epoch",
                  "mean cross entropy (log scale)", curves);
  std::printf("\nwrote %s/digits.svg (loss curves) and %s/digits.dot (graph)\n", folder.c_str(), folder.c_str());
  return fused.accuracy >= 0.9 && tensors.accuracy >= 0.9 && difference <= 1e-4 ? 0 : 1;
} catch (std::exception const& e) {
  std::fprintf(stderr, "digits: %s\n", e.what());
  return 1;
}
