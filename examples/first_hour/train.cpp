// SPDX-License-Identifier: BSL-1.0
// A classifier on a CSV file: a struct of tensors, Adam, mini-batches, and its parameters in a file and back.
// output: accuracy 0\.9[0-9]+, reloaded the same: yes
#include <varve/io/csv.hpp>
#include <varve/io/tree_file.hpp>
#include <varve/nn.hpp>
#include <varve/optim.hpp>
#include <varve/varve.hpp>

#include <cstdio>
namespace vv = varve;
using vv::tensor;
struct network {
  tensor w1, b1, w2, b2; // that is all: a struct of tensors is a tree
};
auto scores = [](network const& m, tensor const& x) { return vv::relu(x.matmul(m.w1) + m.b1).matmul(m.w2) + m.b2; };
auto loss = [](network const& m, tensor const& x, tensor const& y) { return vv::cross_entropy(scores(m, x), y); };

int main() {
  tensor const table = vv::read_csv(VARVE_EXAMPLE_DATA "/digits.csv").data.to(vv::dtype::float32);
  tensor const x = table.at(vv::ellipsis, vv::slice(0, 64)) / 16.0;
  tensor const labels = table.at(vv::ellipsis, 64).to(vv::dtype::int64);
  vv::manual_seed(1);
  network m{vv::kaiming_normal({64, 32}, vv::fan::out), vv::zeros({32}), vv::xavier_normal({32, 10}), vv::zeros({10})};
  vv::optim::adam const opt{.lr = 1e-2};
  auto state = opt.init(m);
  auto const batches = vv::optim::batches(64, x, labels).shuffled();
  for (int epoch = 1; epoch <= 5; ++epoch)
    for (auto const& [in, label] : vv::optim::progress_of(batches, "epoch " + std::to_string(epoch)))
      opt.step(m, vv::grad(loss)(m, in, label), state);
  vv::save_tree("network.safetensors", m);
  network const again = vv::load_tree("network.safetensors", m);
  auto const accuracy = [&](network const& n) {
    return (scores(n, x).argmax(1) == labels).to(vv::dtype::float32).mean().item();
  };
  std::printf("accuracy %.3f, reloaded the same: %s\n", accuracy(m), accuracy(m) == accuracy(again) ? "yes" : "no");
}
