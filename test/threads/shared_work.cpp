// SPDX-License-Identifier: BSL-1.0
#include <varve/dispatch/parallel_for.hpp>
#include <varve/export/cpp_backend.hpp>
#include <varve/nn.hpp>
#include <varve/random.hpp>
#include <varve/sorting.hpp>
#include <varve/special.hpp>
#include <varve/varve.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>
#include <varve_test.hpp>

namespace vv = varve;
namespace k = varve::kernel;
using vv::array, vv::dtype, vv::index_t, vv::tensor;

static_assert(VARVE_HAS_THREADS() && vv::fusion::threaded);

#if VARVE_USE_OPENMP
constexpr bool by_openmp = true;
int number_of_thread() { return omp_get_thread_num(); }
#else
constexpr bool by_openmp = false;
thread_local bool another_thread = true;
bool const known = (another_thread = false); // this one is the first
int number_of_thread() { return another_thread; }
#endif

// An operator that tells which thread computed an element.
struct worker_t : vv::promoting_operator<worker_t> {
  static constexpr auto op_name = "worker";
};
inline constexpr worker_t worker{};
template <>
struct vv::rules<worker_t> : vv::rule::pointwise<1> {
  static constexpr auto kernel(auto x) {
    return decltype(x)(static_cast<k::element_t<decltype(x)>>(number_of_thread()));
  }
  static constexpr auto partial(vv::arg_t<0>, auto const&, auto const&) { return 0.0; }
};

namespace {
/// Runs `f` with this many threads.
template <class F>
auto with_threads(int n, F const& f) {
  struct restored {
    int before = vv::get_num_threads();
    ~restored() { vv::set_num_threads(before); }
  } const guard;
  vv::set_num_threads(n);
  return f();
}
template <class A>
std::unique_ptr<A> waves(double phase) {
  auto r = std::make_unique<A>();
  for (index_t e = 0; e < static_cast<index_t>(A::size()); ++e)
    r->data[e] = static_cast<typename A::value_type>(std::sin(phase + 1.3 * static_cast<double>(e)));
  return r;
}
tensor waves(vv::dims const& sizes, double phase) {
  tensor t = tensor::empty(sizes, dtype::float32);
  for (index_t e = 0; e < t.numel(); ++e)
    t.data<float>()[e] = static_cast<float>(std::sin(phase + 1.3 * static_cast<double>(e)));
  return t;
}
bool same_bits(tensor const& a, tensor const& b) {
  return a.sizes() == b.sizes() &&
         std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.numel() * vv::itemsize(a.dtype()))) == 0;
}

/// Did two threads compute what `worker` gave? Those of OpenMP take parts of equal size; of the pool the first one may
/// have done all before another one woke.
bool seen_by_two(tensor const& t) {
  return !by_openmp || (t.data<float>()[0] == 0 && t.data<float>()[t.numel() - 1] == 1);
}

std::vector<int> const several = by_openmp ? std::vector{2, 3, 4} : std::vector{3};

constexpr index_t size = 100003; // neither whole vectors nor whole parts
constexpr auto gate = [](auto const& x, auto const& w) { return vv::tanh(x * w) * x + x; };
constexpr auto total = [](auto const& x, auto const& w) { return vv::sum(vv::tanh(x * w) * x + x); };
constexpr auto rows = [](auto const& x, auto const& w) {
  return std::tuple{vv::sum(x * w, vv::axis<1>), vv::amax(x - w, vv::axis<1>)};
};
constexpr auto columns = [](auto const& x, auto const& w) { return vv::sum(x * w, vv::axis<0>); };
} // namespace

TEST_CASE("threads: parts cover a loop in order, whole units each, and depend on sizes alone", "[graph][threads]") {
  for (index_t const n : {index_t{1}, index_t{63}, index_t{40000}, size}) {
    vv::fusion::loop_parts const parts(n, 64, n * 3);
    CHECK((parts.count > 1) == (n * 3 >= vv::fusion::shared_points));
    CHECK(parts.begin(0) == 0);
    CHECK(parts.begin(parts.count) == n);
    for (int part = 0; part < parts.count; ++part) {
      CHECK(parts.begin(part) % 64 == 0);
      CHECK(parts.begin(part + 1) - parts.begin(part) >= (parts.count > 1 ? 64 : 1));
    }
  }
}

TEST_CASE("threads: parts run at the same time, each once", "[threads]") {
  for (int again = 0; again < 50; ++again) {
    std::atomic<int> begun = 0, calls[2]{};
    with_threads(2, [&] {
      vv::fusion::for_each_part(2, [&](int k) {
        ++begun, ++calls[k];
        while (begun < 2) std::this_thread::yield(); // for the other one
      });
    });
    CHECK((calls[0] == 1 && calls[1] == 1));
  }
}

TEST_CASE("threads share a long loop, and no short one", "[graph][threads]") {
  auto const x = waves<array<float, size>>(0.1);
  auto const y = std::make_unique<array<float, size>>();
  constexpr auto f = vv::fuse([](auto const& v) { return worker(v); });
  with_threads(2, [&] { f.into (*y)(*x); });
  CHECK((!by_openmp || (y->data[0] == 0 && y->data[size - 1] == 1)));
  array<float, 1000> few{}, who{};
  with_threads(2, [&] { f.into(who)(few); });
  for (float w : who.data) CHECK(w == 0);
}

TEST_CASE("threads: elementwise results are those of short loops, to the bit", "[graph][threads]") {
  using many = array<float, size>;
  using few = array<float, 1009>;
  auto const x = waves<many>(0.1), w = waves<many>(0.7);
  constexpr auto f = vv::fuse(gate);
  for (int const threads : {1, 2, 3}) {
    auto const y = std::make_unique<many>();
    with_threads(threads, [&] { f.into (*y)(*x, *w); });
    index_t wrong = 0;
    for (index_t at = 0; at + 1009 <= size; at += 1009 - 13) {
      few a, b, part;
      std::memcpy(a.data, x->data + at, sizeof a), std::memcpy(b.data, w->data + at, sizeof b);
      f.into(part)(a, b);
      wrong += std::memcmp(part.data, y->data + at, sizeof part) != 0;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("threads: sums do not depend on the number of threads", "[graph][threads]") {
  auto const x = waves<array<float, size>>(0.1), w = waves<array<float, size>>(0.7);
  double expected = 0;
  for (index_t e = 0; e < size; ++e)
    expected += std::tanh(static_cast<double>(x->data[e]) * w->data[e]) * x->data[e] + x->data[e];
  constexpr auto f = vv::fuse(total);
  float const one = with_threads(1, [&] { return f(*x, *w); });
  CHECK(one == Approx(expected).epsilon(1e-4));
  for (int const threads : {2, 3, 2, 3}) CHECK(with_threads(threads, [&] { return f(*x, *w); }) == one);
  constexpr auto both = vv::fuse(
      [](auto const& a, auto const& b) { return std::tuple{vv::amax(a * b), vv::amin(a * b), vv::sum(a), a + b}; });
  using result = std::tuple<float, float, float, array<float, size>>;
  auto const first = std::make_unique<result>(with_threads(1, [&] { return both(*x, *w); })),
             second = std::make_unique<result>(with_threads(3, [&] { return both(*x, *w); }));
  CHECK(std::get<0>(*first) == std::get<0>(*second));
  CHECK(std::get<1>(*first) == std::get<1>(*second));
  CHECK(std::get<2>(*first) == std::get<2>(*second));
  CHECK(std::memcmp(std::get<3>(*first).data, std::get<3>(*second).data, sizeof(float) * size) == 0);
  float greatest = x->data[0] * w->data[0];
  for (index_t e = 0; e < size; ++e) greatest = std::fmax(greatest, x->data[e] * w->data[e]);
  CHECK(std::get<0>(*first) == greatest);
}

TEST_CASE("threads: symbolic sizes, rows and columns, long and short", "[graph][threads]") {
  constexpr auto values = vv::fuse<vv::spec<float, vv::dim<"n">>, vv::spec<float, vv::dim<"n">>>(gate);
  constexpr auto sum = vv::fuse<vv::spec<float, vv::dim<"n">>, vv::spec<float, vv::dim<"n">>>(total);
  constexpr auto by_row = vv::fuse<vv::spec<float, vv::dim<"n">, 37>, vv::spec<float, vv::dim<"n">, 37>>(rows);
  constexpr auto by_column = vv::fuse<vv::spec<float, vv::dim<"n">, 37>, vv::spec<float, vv::dim<"n">, 37>>(columns);
  for (index_t const n : {index_t{0}, index_t{5}, index_t{100}, index_t{32768}, size}) {
    tensor const x = waves({n}, 0.1), w = waves({n}, 0.7), eager = gate(x, w);
    tensor const one = with_threads(1, [&] { return values(x, w); }),
                 one_sum = with_threads(1, [&] { return sum(x, w); });
    index_t wrong = 0;
    for (index_t e = 0; e < n; ++e) wrong += !(std::fabs(one.data<float>()[e] - eager.data<float>()[e]) <= 1e-6f);
    CHECK(wrong == 0);
    CHECK(one_sum.item<float>() == Approx(vv::sum(eager).item<float>()).epsilon(1e-4).margin(1e-4));
    for (int const threads : {2, 3}) {
      CHECK(same_bits(one, with_threads(threads, [&] { return values(x, w); })));
      CHECK(same_bits(one_sum, with_threads(threads, [&] { return sum(x, w); })));
    }
  }
  for (index_t const n : {index_t{3}, index_t{3001}}) {
    tensor const x = waves({n, 37}, 0.1), w = waves({n, 37}, 0.7);
    auto const [sums, most] = with_threads(1, [&] { return by_row(x, w); });
    auto const [sums_of_3, most_of_3] = with_threads(3, [&] { return by_row(x, w); });
    CHECK(same_bits(sums, sums_of_3));
    CHECK(same_bits(most, most_of_3));
    tensor const eager = vv::sum(x * w, vv::axis<1>);
    index_t wrong = 0;
    for (index_t e = 0; e < n; ++e) wrong += !(std::fabs(sums.data<float>()[e] - eager.data<float>()[e]) <= 1e-5f);
    CHECK(wrong == 0);
    CHECK(same_bits(most, vv::amax(x - w, vv::axis<1>)));
    CHECK(
        same_bits(with_threads(1, [&] { return by_column(x, w); }), with_threads(3, [&] { return by_column(x, w); })));
  }
}

TEST_CASE("threads: blocks of programs made at run time, and tables", "[graph][threads]") {
  tensor const x = waves({size}, 0.1), w = waves({size}, 0.7);
  auto const f = vv::compile(gate, x, w);
  constexpr auto table = vv::fuse<vv::spec<float, size>, vv::spec<float, size>>(gate, vv::table_driven);
  tensor const one = with_threads(1, [&] { return f(x, w); }), of_table = with_threads(1, [&] { return table(x, w); });
  for (int const threads : {2, 3}) {
    CHECK(same_bits(one, with_threads(threads, [&] { return f(x, w); })));
    CHECK(same_bits(of_table, with_threads(threads, [&] { return table(x, w); })));
  }
  auto const who = vv::compile([](tensor const& v) { return worker(v); }, x);
  tensor const y = with_threads(2, [&] { return who(x); });
  CHECK(seen_by_two(y));
  tensor const a = waves({3001, 37}, 0.1), b = waves({3001, 37}, 0.7);
  auto const by_row = vv::compile(rows, a, b);
  auto const by_column = vv::compile(columns, a, b);
  auto const [sums, most] = with_threads(1, [&] { return by_row(a, b); });
  auto const [sums_of_3, most_of_3] = with_threads(3, [&] { return by_row(a, b); });
  CHECK(same_bits(sums, sums_of_3));
  CHECK(same_bits(most, most_of_3));
  CHECK(same_bits(with_threads(1, [&] { return by_column(a, b); }), with_threads(3, [&] { return by_column(a, b); })));
}

TEST_CASE("threads: a fused function called by many threads runs on each of them", "[graph][threads]") {
  tensor const x = waves({size}, 0.1), w = waves({size}, 0.7);
  constexpr auto f = vv::fuse<vv::spec<float, size>, vv::spec<float, size>>(gate);
  tensor const expected = f(x, w);
  int wrong = 0;
#if VARVE_USE_OPENMP
#pragma omp parallel for num_threads(3) reduction(+ : wrong)
  for (int call = 0; call < 6; ++call) wrong += !same_bits(f(x, w), expected);
#endif
  std::atomic<int> of_threads = 0;
  {
    std::vector<std::jthread> all;
    for (int k = 0; k < 3; ++k)
      all.emplace_back([&] {
        for (int call = 0; call < 20; ++call) of_threads += !same_bits(f(x, w), expected);
      });
  }
  CHECK(wrong + of_threads == 0);
}

TEST_CASE("threads: rows that several loop nests go through in turn", "[graph][threads][rows]") {
  auto const product = [](auto const& a, auto const& b) { return vv::softmax(a * b, vv::axis<1>); };
  auto const slope = vv::grad<0, 1>([=](auto const& a, auto const& b) { return vv::sum(product(a, b) * vv::tanh(b)); });
  auto const means = [=](auto const& a, auto const& b) { // sums over the rows, which stay on one thread
    auto const s = product(a, b);
    return std::tuple{s, vv::sum(s * a, vv::axis<1>), vv::sum(s * b, vv::axis<0>)};
  };
  for (index_t const columns : {index_t{37}, index_t{1000}}) {
    tensor const x = waves({301, columns}, 0.1), y = waves({301, columns}, 0.7);
    auto const rows_of = vv::compile(product, x, y);
    auto const slopes = vv::compile(slope, x, y);
    auto const all = vv::compile(means, x, y);
    tensor const one = with_threads(1, [&] { return rows_of(x, y); }), eager = product(x, y);
    auto const [dx, dy] = with_threads(1, [&] { return slopes(x, y); });
    auto const [s, by_row, by_column] = with_threads(1, [&] { return all(x, y); });
    index_t wrong = 0;
    for (index_t e = 0; e < one.numel(); ++e)
      wrong += !(std::fabs(one.data<float>()[e] - eager.data<float>()[e]) <= 1e-6f);
    CHECK(wrong == 0);
    for (int const threads :
         {2, 3, 4}) { // not more: libomp 14 does not free the arrays of a team that grows past twice the cores
      CHECK(same_bits(one, with_threads(threads, [&] { return rows_of(x, y); })));
      auto const [ex, ey] = with_threads(threads, [&] { return slopes(x, y); });
      CHECK(same_bits(dx, ex));
      CHECK(same_bits(dy, ey));
      auto const [t, t_row, t_column] = with_threads(threads, [&] { return all(x, y); });
      CHECK(same_bits(s, t));
      CHECK(same_bits(by_row, t_row));
      CHECK(same_bits(by_column, t_column));
    }
  }
  tensor const many = waves({301, 1000}, 0.1);
  auto const who = vv::compile(
      [](tensor const& v) { return worker(v - vv::unsqueeze(vv::sum(v * v, vv::axis<1>), vv::axis<1>)); }, many);
  tensor const threads = with_threads(2, [&] { return who(many); });
  CHECK(seen_by_two(threads));
}

TEST_CASE("threads: operators share long work, and their results are those of one thread", "[threads]") {
  constexpr index_t tall = 101; // more than threads share; sanitizers are slow
  tensor const x = waves({tall, 1000}, 0.1), y = waves({tall, 1000}, 0.7), row = waves({1000}, 0.3),
               column = waves({tall, 1}, 0.4), b = waves({40, 50, 60}, 0.2), c = waves({40, 60, 50}, 0.5),
               image = waves({6, 8, 32, 32}, 0.1), kernels = waves({8, 8, 3, 3}, 0.9),
               queries = waves({2, 3, 200, 16}, 0.6);
  auto const drawn = [](auto const& draw) {
    vv::manual_seed(3);
    return draw();
  };
  std::vector<std::pair<char const*, std::function<tensor()>>> const all{
      {"add", [&] { return x + y; }},
      {"exp", [&] { return vv::exp(x); }},
      {"comparison", [&] { return vv::to(x < y, dtype::float32); }},
      {"conversion", [&] { return x + vv::to(y, dtype::float64); }},
      {"row", [&] { return x * row; }},
      {"column", [&] { return x * column; }},
      {"transposed", [&] { return vv::transpose(x) + vv::transpose(y) * 2.0; }},
      {"one transposed", [&] { return vv::contiguous(vv::transpose(x)); }},
      {"stepped", [&] { return vv::slice(x, 1, 0, 1000, 2) * 2.0; }},
      {"sum", [&] { return vv::sum(x); }},
      {"sum of many", [&] { return vv::sum(vv::cat(std::vector<tensor>{x, y, x}, 0)); }},
      {"amax", [&] { return vv::amax(vv::cat(std::vector<tensor>{x, y}, 0)); }},
      {"sum of rows", [&] { return vv::sum(x, 1); }},
      {"sum of columns", [&] { return vv::sum(x, 0); }},
      {"sum of the middle", [&] { return vv::sum(b, 1); }},
      {"sum of two axes", [&] { return vv::sum(b, vv::dims{0, 2}); }},
      {"integers", [&] { return vv::to(vv::sum(vv::to(x * 10.0, dtype::int32), 0), dtype::float32); }},
      {"matmul", [&] { return vv::matmul(x, vv::transpose(y)); }},
      {"matmul of few rows", [&] { return vv::matmul(vv::slice(x, 0, 0, 50), vv::transpose(y)); }},
      {"matmul of transposed", [&] { return vv::matmul(vv::transpose(x), y); }},
      {"matmul in batches", [&] { return vv::matmul(b, c); }},
      {"matrix and vector", [&] { return vv::matmul(x, row); }},
      {"vector and matrix", [&] { return vv::matmul(vv::reshape(column, {tall}), x); }},
      {"softmax", [&] { return vv::softmax(x, 1); }},
      {"softmax of columns", [&] { return vv::softmax(x, 0); }},
      {"layer norm", [&] { return vv::layer_norm(x, vv::dims{1000}); }},
      {"gradient of layer norm",
       [&] {
         return vv::grad([&](tensor const& v) { return vv::sum(vv::layer_norm(v, vv::dims{1000}, row) * y); })(x);
       }},
      {"convolution", [&] { return vv::conv2d(image, kernels); }},
      {"sort", [&] { return vv::sort(vv::reshape(x, {tall * 1000})).first; }},
      {"places in order", [&] { return vv::to(vv::argsort(x, 0), dtype::float32); }},
      {"places in order, descending", [&] { return vv::to(vv::argsort(x * 3.0, 1, true), dtype::float32); }},
      {"running sums", [&] { return vv::cumsum(x, 0); }},
      {"running extrema", [&] { return vv::cummax(x, 1).first; }},
      {"gather", [&] { return vv::gather(x, 0, vv::argsort(y, 0)); }},
      {"gather of one axis",
       [&] { return vv::gather(vv::reshape(x, {tall * 1000}), 0, vv::argsort(vv::reshape(y, {tall * 1000}))); }},
      {"rows by index", [&] { return vv::index_select(x, 0, vv::remainder(vv::arange(5000), tall)); }},
      {"uniform", [&] { return drawn([] { return vv::rand({tall * 1000 + 1}); }); }},
      {"normal", [&] { return drawn([] { return vv::randn({tall * 1000 + 1}); }); }},
      {"integers at random",
       [&] { return drawn([] { return vv::to(vv::randint(0, 1000, {tall * 1000 + 1}), dtype::float32); }); }},
      {"normal in double", [&] { return drawn([] { return vv::randn({40001}, dtype::float64); }); }},
      {"attention", [&] { return vv::scaled_dot_product_attention(queries, queries, queries * 2.0); }},
      {"gradient of attention",
       [&] {
         auto const f = [&](tensor const& v) {
           return vv::sum(vv::scaled_dot_product_attention(v, v, v * 2.0) * queries);
         };
         tensor leaf = queries.alias();
         leaf.requires_grad_(true);
         f(leaf).backward();
         return leaf.grad();
       }},
      {"gradient", [&] { return vv::grad([&](tensor const& v) { return vv::sum(vv::tanh(v * y) * v); })(x); }},
  };
  for (auto const& [name, f] : all) {
    tensor const one = with_threads(1, f);
    for (int const threads : several) {
      INFO(name << ", " << threads << " threads");
      CHECK(same_bits(vv::contiguous(one), vv::contiguous(with_threads(threads, f))));
    }
  }
  CHECK(vv::sum(x).item<float>() == Approx(vv::sum(vv::sum(x, 1)).item<float>()).margin(1e-3));
  // A kernel of the program's tells who computes: two threads do.
  tensor const who = with_threads(2, [&] { return worker(x); });
  CHECK(seen_by_two(who));
  CHECK(vv::sum(with_threads(2, [&] { return worker(row); })).item<float>() == 0); // not worth it
}

TEST_CASE("threads: programs of backends::cpp share their loops", "[threads]") {
  if (!by_openmp) { // they do so with OpenMP alone
    CHECK(vv::fusion::threads_of_this_build == vv::fusion::threads::of_pool);
    return;
  }
  std::string name = (std::filesystem::temp_directory_path() / "varve_threads_XXXXXX").string();
  std::filesystem::path const cache = ::mkdtemp(name.data());
  tensor const x = waves({301, 1000}, 0.1), y = waves({301, 1000}, 0.7), flat = waves({size}, 0.2);
  auto const backend =
      vv::backends::cpp.with({.flags = {"-O1"}, .cache = cache, .include = VARVE_TEST_DIR "/../include", .wait = true});
  auto const f = vv::compile(
      [](tensor const& a, tensor const& b) { return std::pair(vv::exp(a) * b - a, vv::sum(vv::tanh(a) * b, 1)); },
      backend);
  auto const g = vv::compile([](tensor const& a) { return vv::sin(a) * 2.0 + 1.0; }, backend);
  auto const before = vv::backends::cpp_status();
  auto const [elements, sums] = with_threads(1, [&] { return f(x, y); });
  tensor const one = with_threads(1, [&] { return g(flat); });
  CHECK(vv::backends::cpp_status().fused == before.fused);
  CHECK(vv::allclose(one, vv::sin(flat) * 2.0 + 1.0, 1e-5, 1e-6));
  CHECK(vv::allclose(elements, vv::exp(x) * y - x, 1e-5, 1e-6));
  for (int const threads : several) {
    auto const [e, s] = with_threads(threads, [&] { return f(x, y); });
    CHECK(same_bits(e, elements));
    CHECK(same_bits(s, sums));
    CHECK(same_bits(with_threads(threads, [&] { return g(flat); }), one));
  }
  std::filesystem::remove_all(cache);
}

TEST_CASE("threads: what a kernel throws on another thread reaches the caller", "[threads]") {
  tensor const a = vv::ones({100000}, dtype::int64), b = vv::ones({100000}, dtype::int64);
  vv::fill_(vv::slice(b, 0, 99000, 99001), 0);
  auto const divided = [](tensor const& x, tensor const& y) { return vv::floor_divide((x + y) * x - x, y) * x + y; };
  auto const fast = vv::compile(divided);
  for (int const threads : {1, 3}) {
    CHECK_THROWS_WITH(with_threads(threads, [&] { return vv::floor_divide(a, b); }), Catch::Contains("by zero"));
    CHECK_THROWS_WITH(with_threads(threads, [&] { return fast(a, b); }), Catch::Contains("by zero"));
  }
  CHECK(with_threads(3, [&] { return vv::floor_divide(a, a); })[99999].item<std::int64_t>() == 1);
}

TEST_CASE("threads: set_num_threads; what runs in a part of something larger is not shared again", "[threads]") {
  int const before = vv::get_num_threads();
  vv::set_num_threads(3);
  CHECK(vv::get_num_threads() == 3);
  CHECK(vv::fusion::most_threads() == 3);
  tensor const x = waves({301, 1000}, 0.1), right = vv::exp(x);
  std::atomic<int> shared = 0, wrong = 0;
  auto const part = [&] {
    shared += vv::fusion::most_threads() != 1;
    wrong += !same_bits(vv::exp(x), right);
  };
  vv::parallel_for(0, 4, 1, [&](index_t, index_t) { part(); }, 4);
#if VARVE_USE_OPENMP
#pragma omp parallel num_threads(2)
  part();
#endif
  vv::fusion::for_each_part(3, [&](int) { part(); });
  CHECK(shared == 0);
  CHECK(wrong == 0);
  CHECK(vv::fusion::most_threads() == 3);
  vv::set_num_threads(0);
  CHECK(vv::get_num_threads() == 1);
  vv::set_num_threads(before);
}
