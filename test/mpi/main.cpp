// SPDX-License-Identifier: BSL-1.0
// Operators between processes: mpirun -n 2 varve_test_mpi <what>. Every rank runs the same checks; one that fails on a
// rank ends all. `dies` and `killed` are what must not wait forever.
#include <varve/aot.hpp>
#include <varve/export.hpp>
#include <varve/interop/mpi.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace vv = varve;
namespace mpi = varve::mpi;
using vv::dims;
using vv::tensor;

namespace {
int checks = 0;
void check(bool right, char const* what, int line) {
  ++checks;
  if (!right) throw std::runtime_error("line " + std::to_string(line) + ": " + what);
}
#define EXPECT(...) check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __LINE__)

template <class E, class F>
std::string message_of(F const& f) {
  try {
    (void)f();
  } catch (E const& e) { return e.what(); }
  return "";
}
bool same(tensor const& a, tensor const& b) { return a.sizes() == b.sizes() && a.to_vector() == b.to_vector(); }
/// The inner product over all ranks.
double inner(tensor const& a, tensor const& b) { return mpi::all_reduce(vv::sum(a * b)).item<double>(); }

/// What one rank has: different on each.
tensor mine(int r, dims const& s) {
  return vv::arange(vv::numel(s)).to(vv::dtype::float64).reshape(s) * 0.5 + (r + 1.0);
}

/// <A x, y> over all ranks is <x, A' y>, by vjp; the tangent is A of the tangent; vmap is a loop.
template <class F>
void laws(char const* name, F const& f, tensor const& x, tensor const& batch) {
  auto const [y, back] = vv::vjp(f, x);
  tensor const g = vv::sin(y * 3.0 + 1.0);
  double const a = inner(y, g), b = inner(x, std::get<0>(back(g)));
  check(std::abs(a - b) <= 1e-12 * std::abs(a), name, __LINE__);
  auto const [same_y, tangent] = vv::jvp(f, std::tuple{x}, std::tuple{vv::cos(x)});
  check(same(same_y, y) && same(tangent, f(vv::cos(x))), name, __LINE__);
  tensor const lanes = vv::vmap(f)(batch);
  for (int k = 0; k < batch.size(0); ++k) check(same(lanes[k], f(batch[k])), name, __LINE__);
  // reverse over reverse, and batched gradients
  auto const square = [&](tensor const& v) { return vv::sum(f(v) * f(v)); };
  tensor const each = vv::vmap(vv::grad(square))(batch);
  for (int k = 0; k < batch.size(0); ++k) check(same(each[k], vv::grad(square)(batch[k])), name, __LINE__);
}

void values() {
  int const r = mpi::world.rank(), n = mpi::world.size();
  tensor const x = mine(r, {2, 3});
  tensor sum = mine(0, {2, 3});
  for (int k = 1; k < n; ++k) sum = sum + mine(k, {2, 3});
  EXPECT(same(mpi::all_reduce(x), sum));
  EXPECT(same(mpi::all_reduce(x.t()), sum.t())); // whatever the strides
  tensor const columns = vv::zeros({3, 2}, vv::dtype::float64);
  vv::out(columns.t())(mpi::broadcast, x, 1); // ... of results too
  EXPECT(same(columns.t(), mine(1, {2, 3})));
  EXPECT(same(mpi::broadcast(x, 1), mine(1, {2, 3})));
  EXPECT(same(mpi::reduce(x, 0), r == 0 ? sum : vv::zeros_like(x)));
  tensor const all = mpi::all_gather(x);
  EXPECT(all.sizes() == dims{n, 2, 3});
  for (int k = 0; k < n; ++k) EXPECT(same(all[k], mine(k, {2, 3})));
  EXPECT(same(mpi::reduce_scatter(all), mine(r, {2, 3}) * double(n)));
  EXPECT(same(mpi::send_recv(x, (r + 1) % n, (r + n - 1) % n), mine((r + n - 1) % n, {2, 3})));
  EXPECT(mpi::all_reduce(vv::full({}, 2, vv::dtype::int64)).item<std::int64_t>() == 2 * n);
  // static values: numbers and arrays
  EXPECT(mpi::all_reduce(r + 1.0) == n * (n + 1) / 2.0);
  vv::array<double, 2> const a{1.0 + r, 2.0};
  EXPECT(mpi::broadcast(a, vv::ints<1>{})[0] == 2.0);
  EXPECT(vv::grad([](auto v) { return vv::sum(mpi::all_reduce(v) * v); })(a)[1] == 2.0 * n * 2.0);
  if (n == 2) EXPECT(mpi::all_gather(a, mpi::world_of<2>).at(1, 0) == 2.0);
  // a communicator of one's own: ranks in the other order
  MPI_Comm turned;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -r, &turned);
  mpi::communicator const c(turned);
  EXPECT(c.rank() == n - 1 - r);
  EXPECT(same(mpi::broadcast(x, 0, c), mine(n - 1, {2, 3})));
  MPI_Comm_free(&turned);
}

void derivatives() {
  int const r = mpi::world.rank(), n = mpi::world.size();
  tensor const x = mine(r, {2, 3}), batch = mine(r, {4, 2, 3});
  laws("all_reduce", [](auto const& v) { return mpi::all_reduce(v); }, x, batch);
  laws("broadcast", [](auto const& v) { return mpi::broadcast(v, 1); }, x, batch);
  laws("reduce", [](auto const& v) { return mpi::reduce(v, 1); }, x, batch);
  laws("all_gather", [](auto const& v) { return mpi::all_gather(v); }, x, batch);
  laws("reduce_scatter", [](auto const& v) { return mpi::reduce_scatter(v); }, mine(r, {n, 3}), mine(r, {4, n, 3}));
  laws("send_recv", [=](auto const& v) { return mpi::send_recv(v, (r + 1) % n, (r + n - 1) % n); }, x, batch);

  // a loss that every rank computes alike, of parameters that all have
  tensor const w = mine(0, {3});
  auto const loss = [&](tensor const& v) { return vv::sum(mpi::shared_sum(mpi::shared(v) * x)); };
  EXPECT(same(vv::grad(loss)(w), vv::sum(mpi::all_reduce(x), 0)));
  // second derivatives, functions that are run again, programs without writes
  auto const half_square = [](tensor const& v) { return vv::sum(vv::square(mpi::all_reduce(v))) * 0.5; };
  tensor const h = vv::hessian(half_square)(w);
  EXPECT(same(h, vv::eye(3, vv::dtype::float64) * double(n * n)));
  auto const again = [](tensor const& v) {
    return vv::sum(vv::checkpoint([](tensor const& u) { return mpi::all_reduce(u * u); }, v));
  };
  EXPECT(same(vv::grad(again)(x), x * (2.0 * n)));
  EXPECT(same(vv::functionalize([](tensor const& v) { return mpi::all_reduce(v); })(x), mpi::all_reduce(x)));
  // eager autograd
  tensor leaf = w.clone();
  leaf.requires_grad_();
  loss(leaf).backward();
  EXPECT(same(leaf.grad(), vv::grad(loss)(w)));
}

void messages() {
  int const r = mpi::world.rank();
  if (mpi::world.size() != 2) return;
  tensor const x = mine(r, {3});
  // rank 0 sends squares, rank 1 weighs them: the gradient comes back
  auto const loss = [&](tensor const& v) {
    if (r == 0) return vv::to(mpi::send(v * v, 1), vv::dtype::float64);
    return vv::sum(mpi::recv(0.0 * v, 0) * vv::arange(3).to(vv::dtype::float64));
  };
  tensor const g = vv::grad(loss)(x);
  EXPECT(same(g, r == 0 ? 2.0 * x * vv::arange(3).to(vv::dtype::float64) : vv::zeros_like(x)));
  tensor const t = vv::jvp(loss, std::tuple{x}, std::tuple{vv::ones_like(x)}).second;
  if (r == 1) EXPECT(t.item<double>() == 2 * (0 * 1 + 1 * 1.5 + 2 * 2.0));
  tensor const lanes = vv::vmap(vv::grad(loss))(vv::stack(std::tuple{x, 2.0 * x}));
  EXPECT(same(lanes[0], g) && same(lanes[1], 2.0 * g));
}

/// In graphs the calls are effects in the order of the text.
void graphs() {
  int const r = mpi::world.rank(), n = mpi::world.size();
  tensor const x = mine(r, {2, 3}), one = vv::ones_like(x);
  auto const f = [](tensor const& v) {
    tensor const sums = mpi::all_reduce(v * 2.0);
    (void)mpi::all_gather(v); // unused, and yet a call that the other ranks make
    return vv::sum(mpi::broadcast(sums * v, 1) * v);
  };
  tensor const y = f(x), g = vv::grad(f)(x);
  mpi::world.barrier();
  if (r == 0) { // a trace calls nobody: one rank may trace alone
    vv::graph const alone = vv::make_fx(vv::grad(f))(x);
    EXPECT(alone.count(mpi::all_gather) == 1);
    (void)vv::export_program(f)(x);
  }
  for (vv::graph const& h :
       {vv::make_fx(f)(x), vv::optimize(vv::make_fx(f)(x)), vv::make_fx(vv::functionalize(f))(x)}) {
    EXPECT(vv::verify(h) && h.count(mpi::all_reduce) == 1 && h.count(mpi::all_gather) == 1);
    EXPECT(same(vv::interpret(h, vv::boxed_args(x))[0], y));
  }
  vv::graph const both = vv::optimize(vv::make_fx(vv::grad(f))(x));
  EXPECT(same(vv::interpret(both, vv::boxed_args(x))[0], g));
  auto const fast = vv::compile(f);
  for (int k = 0; k < 2; ++k) EXPECT(same(fast(x), y));
  EXPECT(same(vv::compile(vv::grad(f))(x), g));
  auto const linear = vv::linearize(f, x);
  EXPECT(same(linear.first, y));
  EXPECT(same(linear.second(one), vv::jvp(f, std::tuple{x}, std::tuple{one}).second));
  // Both passes ahead of time; tokens keep the order in each.
  for (bool least : {false, true}) {
    auto const ahead = vv::aot_function(f, {.partition_fn = [=](vv::graph const& h, vv::joint_shape s) {
                                          return least ? vv::min_cut_partition(h, s) : vv::default_partition(h, s);
                                        }});
    tensor leaf = x.clone();
    leaf.requires_grad_();
    tensor const z = ahead(leaf);
    EXPECT(same(z, y));
    z.backward();
    EXPECT(same(leaf.grad(), g));
  }
  auto const p = vv::export_program(f)(x);
  EXPECT(p.tokens() == 1 && same(p(x)[0], y));
  EXPECT(same(vv::program_from_text(vv::to_text(p))(x)[0], y));
  EXPECT(message_of<vv::value_error>([&] {
           return vv::fuse(vv::make_fx(f)(x)), 0;
         }).find("mpi_all_reduce: it does something outside of the program") != std::string::npos);
  MPI_Comm turned;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -r, &turned);
  auto const q =
      vv::export_program([c = mpi::communicator(turned)](tensor const& v) { return mpi::broadcast(v, 0, c); })(x);
  EXPECT(same(q(x)[0], mine(n - 1, {2, 3})));
  EXPECT(message_of<vv::value_error>([&] { return vv::to_text(q); }).find("mpi_broadcast has an attribute that only") !=
         std::string::npos);
  MPI_Comm_free(&turned);
  // Loops and branches, whose gradients call again.
  auto const step = [](tensor const& c, tensor const& v) { return std::pair(c + vv::sum(mpi::all_reduce(v * v)), c); };
  auto const scanned = [&](tensor const& v) { return vv::scan(step, 0.0 * vv::sum(v), v).first; };
  tensor const t = vv::grad(scanned)(x);
  EXPECT(same(t, x * (2.0 * n)));
  EXPECT(same(vv::interpret(vv::make_fx(vv::grad(scanned))(x), vv::boxed_args(x))[0], t));
  auto const branched = [](tensor const& v) {
    auto const on_true = [](tensor const& u) { return vv::sum(mpi::all_reduce(u * u)); };
    return vv::cond(vv::gt(vv::sum(mpi::all_reduce(v)), 0.0), on_true, [](tensor const& u) { return vv::sum(u); }, v);
  };
  EXPECT(same(vv::grad(branched)(x), x * (2.0 * n)));
  EXPECT(same(vv::interpret(vv::make_fx(vv::grad(branched))(x), vv::boxed_args(x))[0], x * (2.0 * n)));
  EXPECT(same(vv::vmap(vv::grad(branched))(vv::stack(std::tuple{x, x}))[1], x * (2.0 * n)));
}

void refusals() {
  tensor const x = vv::ones({2});
  EXPECT(message_of<vv::index_error>([&] { return mpi::broadcast(x, 7); }) ==
         "varve: broadcast: index 7 is out of range for size " + std::to_string(mpi::world.size()));
  EXPECT(!message_of<vv::dtype_error>([&] { return mpi::all_reduce(x > 0.0); }).empty());
  // another number of elements on each rank: an error on all, no waiting
  auto const d = message_of<mpi::error>([&] { return mpi::all_reduce(vv::ones({2 + mpi::world.rank()})); });
  EXPECT(d.find("all ranks must make the same calls in the same order") != std::string::npos);
  auto const o = message_of<mpi::error>([&] { return mpi::world.rank() ? mpi::broadcast(x, 0) : mpi::all_reduce(x); });
  EXPECT(o.find("another rank calls something else") != std::string::npos);
}
} // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv, [&] {
    if (argc > 1 && !std::strcmp(argv[1], "dies")) { // rank 1 never comes to the sum that rank 0 waits for
      if (mpi::world.rank() == 1) throw std::runtime_error("no more memory");
      (void)mpi::all_reduce(vv::ones({3}));
      return;
    }
    if (argc > 1 && !std::strcmp(argv[1], "killed")) { // ... without a word
      if (mpi::world.rank() == 1) std::raise(SIGKILL);
      (void)mpi::all_reduce(vv::ones({3}));
      return;
    }
    values();
    derivatives();
    messages();
    graphs();
    refusals();
    if (mpi::world.rank() == 0) std::printf("%d checks on %d ranks\n", checks, mpi::world.size());
  });
}
