// SPDX-License-Identifier: BSL-1.0
// A network trained by several processes, each on its share of every batch:  mpirun -n 2 data_parallel
// Each rank takes the gradient of its own share; `shared` sums it over the ranks. Beside it rank after rank trains the
// same network alone, on the whole batches: the two never differ by more than rounding, step by step.
// output: 2 ranks, 112 steps, loss 2\.[0-9]+ to 0\.[0-9]+
// output: greatest difference from one process: [0-9.]+e-1[0-9]
#include <varve/interop/mpi.hpp>
#include <varve/io/csv.hpp>
#include <varve/nn.hpp>
#include <varve/optim.hpp>
#include <varve/varve.hpp>

#include <cstdio>
namespace vv = varve;
namespace mpi = varve::mpi;
using vv::tensor;

struct network {
  tensor w1, b1, w2, b2;
};
auto loss = [](network const& m, tensor const& x, tensor const& labels) {
  return vv::cross_entropy(vv::relu(x.matmul(m.w1) + m.b1).matmul(m.w2) + m.b2, labels);
};
/// The same on a share of the data, of parameters that all ranks have: the mean over the ranks.
auto shared_loss = [](network const& m, tensor const& x, tensor const& labels) {
  network const all = vv::tree_map([](tensor const& w) { return mpi::shared(w); }, m);
  return mpi::shared_sum(loss(all, x, labels)) / double(mpi::world.size());
};

int main(int argc, char** argv) {
  return mpi::run(argc, argv, [] {
    int const rank = mpi::world.rank(), ranks = mpi::world.size();
    vv::index_t const batch = 64, share = batch / ranks;
    tensor const table = vv::read_csv(VARVE_EXAMPLE_DATA "/digits.csv").data;
    tensor const x = table.at(vv::ellipsis, vv::slice(0, 64)) / 16.0;
    tensor const labels = table.at(vv::ellipsis, 64).to(vv::dtype::int64);
    vv::manual_seed(1);
    network together{vv::randn({64, 32}, vv::dtype::float64) * 0.1, vv::zeros({32}, vv::dtype::float64),
                     vv::randn({32, 10}, vv::dtype::float64) * 0.1, vv::zeros({10}, vv::dtype::float64)};
    network alone = vv::tree_map([](tensor const& w) { return w.clone(); }, together);
    vv::optim::sgd const opt{.lr = 0.1, .momentum = 0.9};
    auto state = opt.init(together), state_alone = opt.init(alone);

    double first = 0, last = 0, difference = 0;
    int steps = 0;
    for (int epoch = 0; epoch < 4; ++epoch)
      for (vv::index_t k = 0; k + batch <= x.size(0); k += batch, ++steps) {
        auto const mine = vv::slice(k + rank * share, k + (rank + 1) * share), all = vv::slice(k, k + batch);
        auto const [value, gradient] = vv::value_and_grad(shared_loss)(together, x[mine], labels[mine]);
        opt.step(together, gradient, state);
        opt.step(alone, vv::grad(loss)(alone, x[all], labels[all]), state_alone);
        last = value.item<double>();
        if (steps == 0) first = last;
        difference = std::max(difference, vv::amax(vv::abs(together.w1 - alone.w1)).item<double>());
      }
    if (rank == 0) {
      std::printf("%d ranks, %d steps, loss %.3f to %.3f\n", ranks, steps, first, last);
      std::printf("greatest difference from one process: %.1e\n", difference);
    }
  });
}
