// SPDX-License-Identifier: BSL-1.0
// Fused functions on run-time memory: views of static extents, and tensors under declared specs.
#include <varve/varve.hpp>

#include <cstdlib>
#include <limits>
#include <new>
#include <span>
#include <varve_test.hpp>
namespace vv = varve;
using vv::array, vv::tensor, vv::tensor_ref, vv::index_t, vv::spec;

namespace {
long allocations = 0;
void* take(std::size_t n, std::size_t align) {
  ++allocations;
  if (void* const p = align > alignof(std::max_align_t) ? std::aligned_alloc(align, (n + align - 1) / align * align)
                                                        : std::malloc(n ? n : 1))
    return p;
  throw std::bad_alloc();
}
} // namespace
[[gnu::noinline]] void* operator new(std::size_t n) { return take(n, 0); }
[[gnu::noinline]] void* operator new(std::size_t n, std::align_val_t a) { return take(n, static_cast<std::size_t>(a)); }
[[gnu::noinline]] void* operator new(std::size_t n, std::nothrow_t const&) noexcept {
  ++allocations;
  return std::malloc(n ? n : 1);
}
[[gnu::noinline]] void* operator new(std::size_t n, std::align_val_t a, std::nothrow_t const&) noexcept {
  ++allocations;
  auto const align = static_cast<std::size_t>(a);
  return std::aligned_alloc(align, (n + align - 1) / align * align);
}
[[gnu::noinline]] void operator delete(void* p, std::nothrow_t const&) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t, std::nothrow_t const&) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace {
constexpr auto affine = [](auto x, auto y) { return x * y + 1.0; };
constexpr auto loss = [](auto w, auto x) { return vv::sum(vv::tanh(x * w)); };
tensor counting(vv::dims const& sizes) {
  tensor t = tensor::empty(sizes, vv::dtype::float32);
  for (index_t k = 0; k < t.numel(); ++k) t.data<float>()[k] = static_cast<float>(k);
  return t;
}
/// Blocks from the heap that a call takes, when it is not the first.
template <class F>
long allocated(F const& call) {
  call();
  long const before = allocations;
  call();
  return allocations - before;
}
constexpr auto on_tensors = vv::fuse<spec<float, 3, 4>, spec<double>>(affine);
} // namespace

TEST_CASE("fuse: tensor_ref over pointers, vectors, spans and tensors is read and written in place",
          "[fuse][tensor_ref]") {
  constexpr auto f = vv::fuse(affine);
  std::vector<float> const v{1, 2, 3, 4};
  float raw[] = {10, 20, 30, 40};
  std::span<float> const s(raw);
  tensor out = tensor::empty({2, 2}, vv::dtype::float32);
  array<float, 2, 2> const y = f(tensor_ref<float const, 2, 2>(v), tensor_ref<float, 2, 2>(raw));
  for (index_t k = 0; k < 4; ++k) CHECK(y.data[k] == v[static_cast<std::size_t>(k)] * raw[k] + 1);
  f.into(tensor_ref<float, 2, 2>(out))(tensor_ref<float const, 2, 2>(v), tensor_ref<float, 2, 2>(s));
  for (index_t k = 0; k < 4; ++k) CHECK(out.data<float>()[k] == y.data[k]);
  tensor_ref<float, 2, 2> const kept(raw); // a variable too
  f.into(kept)(tensor_ref<float const, 2, 2>(v), 2.0);
  CHECK(raw[3] == 9);
  double total = 0;
  vv::fuse([](auto x) {
    return vv::sum(x);
  }).into(tensor_ref<double>(&total))(tensor_ref<double const, 2>(std::vector<double>{1, 2}.data()));
  CHECK(total == 3);
  CHECK(vv::fuse([](auto x) { return x + x; })(tensor_ref<double>(&total)) == 6);
  STATIC_REQUIRE(decltype(f)::workspace_bytes<tensor_ref<float const, 2, 2>, array<float, 2, 2>> == 0);
}
TEST_CASE("fuse: tensor_ref does not view what is not contiguous", "[fuse][tensor_ref]") {
  tensor const t = vv::transpose(counting({2, 3}), 0, 1);
  CHECK_THROWS_AS((tensor_ref<float const, 3, 2>(t)), vv::value_error);
  CHECK_THROWS_WITH((tensor_ref<float const, 3, 2>(t)), ContainsText("not contiguous; pass contiguous(t)"));
}
TEST_CASE("fuse: tensors under specs", "[fuse][tensor]") {
  tensor const t = counting({3, 4});
  tensor const y = on_tensors(t, 2.0);
  CHECK(y.dtype() == vv::dtype::float32);
  CHECK(y.sizes() == vv::dims{3, 4});
  for (index_t k = 0; k < 12; ++k) CHECK(y.data<float>()[k] == 2 * static_cast<float>(k) + 1);
  CHECK(on_tensors(t, vv::full({}, 2.0, vv::dtype::float64)).data<float>()[11] == 23); // rank 0 as a tensor
  CHECK(on_tensors(t, 2).data<float>()[11] == 23);                                     // as another number
  array<float, 3, 4> a{};
  a.data[11] = 5;
  CHECK(on_tensors(a, 2.0).data<float>()[11] == 11);
  CHECK(on_tensors(tensor_ref<float, 3, 4>(a.data), 2.0).data<float>()[11] == 11);
  CHECK(on_tensors(tensor_ref<float, vv::dyn, 4>(a.data, {3, 4}), 2.0).data<float>()[11] == 11);
  float turned[12]{};
  turned[11] = 5;
  CHECK(on_tensors(tensor_ref<float, vv::dyn, vv::dyn>(turned, {3, 4}, {1, 3}), 2.0).data<float>()[11] == 11);
  CHECK_THROWS_AS(on_tensors(tensor_ref<float, vv::dyn, vv::dyn>(turned, {4, 3}), 2.0), vv::shape_error);

  auto const [g, l] = vv::fuse<spec<float, 4>, spec<float, 3, 4>>([](auto w, auto x) {
    auto const [value, gradient] = vv::value_and_grad(loss)(w, x);
    return std::pair(gradient, value);
  })(counting({4}), t);
  CHECK(g.sizes() == vv::dims{4});
  CHECK(l.sizes() == vv::dims{});
  CHECK(l.item<float>() == Approx(vv::sum(vv::tanh(t * counting({4}))).item<float>()));
  CHECK(g.data<float>()[0] == Approx(12)); // 0 + 4 + 8
  STATIC_REQUIRE(decltype(on_tensors)::workspace_bytes == 0);
}
TEST_CASE("fuse: elements in another order are brought into row-major order", "[fuse][tensor]") {
  tensor const t = vv::transpose(counting({4, 3}), 0, 1), row = vv::slice(counting({2, 3, 4}), 0, 1, 2),
               every = vv::slice(counting({3, 8}), 1, 1, 8, 2);
  CHECK(on_tensors(t, 1.0).data<float>()[1] == 4); // t(0, 1) = 3
  CHECK(on_tensors(vv::reshape(row, vv::dims{3, 4}), 1.0).data<float>()[0] == 13);
  CHECK(on_tensors(every, 1.0).data<float>()[5] == 12); // every(1, 1) = 11
}
TEST_CASE("fuse: results go to tensors that are there", "[fuse][tensor]") {
  tensor const t = counting({3, 4}), rows = vv::full({2, 3, 4}, 0.0, vv::dtype::float32),
               second = vv::select(rows, 0, 1);
  auto const version = rows.version();
  on_tensors.into(second)(t, 2.0);
  CHECK(rows.data<float>()[11] == 0);
  CHECK(rows.data<float>()[12 + 11] == 23);
  CHECK(rows.version() == version + 1);
  constexpr auto both = vv::fuse<spec<float, 4>>([](auto x) { return std::pair(x * 2.0, vv::sum(x)); });
  tensor const a = counting({4}), twice = counting({4}), total = vv::full({}, 0.0, vv::dtype::float32);
  both.into(twice, total)(a);
  CHECK(twice.data<float>()[3] == 6);
  CHECK(total.item<float>() == 6);
  tensor const again = counting({4}), sum = vv::full({}, 0.0, vv::dtype::float32);
  both.into(std::tuple{again, sum})(a); // a tuple of them too
  CHECK((again.data<float>()[3] == 6 && sum.item<float>() == 6));
  using row = vv::spec_t<float, 4>; // a spec as a type
  CHECK(vv::fuse<row>([](auto x) { return vv::sum(x); })(a).item<float>() == 6);
  CHECK(vv::fuse<row, row>([](auto x, auto y) { return vv::sum(x * y); })(a, a).item<float>() == 14);
  array<float, 4> x{0, 1, 2, 3}, y{};
  float z = 0;
  constexpr auto of_arrays = vv::fuse([](auto v) { return std::pair(v * 2.0, vv::sum(v)); });
  of_arrays.into(std::tie(y, z))(x);
  CHECK((y.data[3] == 6 && z == 6));
  std::tuple<array<float, 4>, float> kept{};
  of_arrays.into(kept)(x);
  CHECK((std::get<0>(kept).data[3] == 6 && std::get<1>(kept) == 6));
}
TEST_CASE("fuse with symbolic sizes: no heap once the thread has scratch memory", "[fuse][tensor][symbolic]") {
  constexpr auto f = vv::fuse<spec<float, vv::dim<"n">, 64>>([](auto x) { return vv::softmax(x, vv::axis<0>); });
  CHECK(decltype(f)::workspace_bytes(5000) >= 0);
  tensor const t = counting({5000, 64}), out = tensor::empty({5000, 64}, vv::dtype::float32);
  CHECK(allocated([&] { f.into(out)(t); }) == 0);
}
TEST_CASE("fuse: no heap besides the results", "[fuse][tensor]") {
  tensor const t = counting({64, 64}), v = counting({64}), out = tensor::empty({64}, vv::dtype::float32);
  constexpr auto f = vv::fuse<spec<float, 64>, spec<float, 64, 64>>(vv::grad(loss));
  CHECK(allocated([&] { f.into(out)(v, t); }) == 0);
  CHECK(allocated([&] { tensor const y = f(v, t); }) ==
        allocated([&] { tensor const y = tensor::empty({64}, vv::dtype::float32); }));
  tensor const y = f(v, t);
  CHECK(y.data<float>()[5] == out.data<float>()[5]);
  constexpr auto tables = vv::fuse<spec<float, 64>, spec<float, 64, 64>>(vv::grad(loss), vv::table_driven);
  CHECK(allocated([&] { tables.into(out)(v, t); }) == 0);
  CHECK(y.data<float>()[5] == Approx(out.data<float>()[5]));
  constexpr auto loop = vv::fuse(
      [](auto c, auto xs) {
        return vv::scan(
                   [](auto u, auto x) {
                     return std::pair{
                         vv::cond(
                             vv::sum(u) > 0.0f, [](auto q) { return q * 0.5f; }, [](auto q) { return vv::exp(q); }, u) +
                             x,
                         u};
                   },
                   c, xs)
            .first;
      },
      vv::table_driven);
  array<float, 4> last;
  array<float, 9, 4> const rows{1, 2, 3};
  CHECK(allocated([&] { loop.into(last)(array<float, 4>{}, rows); }) == 0);
}
TEST_CASE("fuse: a tensor that is not as declared is named, with what was expected and found",
          "[fuse][tensor][error]") {
  tensor const t = counting({3, 4}), out = counting({3, 4}), wide = counting({4, 3}),
               scalar = vv::full({}, 2.0, vv::dtype::float64);
  auto const call = [&](tensor const& a, auto const& b) { return on_tensors(a, b); };
  CHECK_THROWS_AS(call(wide, 2.0), vv::shape_error);
  CHECK_THROWS_WITH(call(wide, 2.0), "varve: fuse: argument 0 is float32[4, 3], expected float32[3, 4]");
  CHECK_THROWS_WITH(call(counting({12}), 2.0), "varve: fuse: argument 0 is float32[12], expected float32[3, 4]");
  CHECK_THROWS_AS(call(t, vv::full({}, 2.0, vv::dtype::float32)), vv::dtype_error);
  CHECK_THROWS_WITH(call(t, vv::full({}, 2.0, vv::dtype::float32)),
                    "varve: fuse: argument 1 is float32[], expected float64[]");
  CHECK_THROWS_WITH(call(tensor(), 2.0), ContainsText("argument 0 is an undefined tensor, expected float32[3, 4]"));
  CHECK_THROWS_AS(call(tensor::meta({3, 4}, vv::dtype::float32), 2.0), vv::transform_error);
  CHECK_THROWS_AS(vv::grad([&](tensor const& x) { return vv::sum(on_tensors(x, scalar)); })(t), vv::transform_error);
  CHECK_THROWS_WITH(vv::grad([&](tensor const& x) { return vv::sum(on_tensors(x, scalar)); })(t),
                    ContainsText("argument 0 is seen through a transform") && ContainsText("fuse<...>(grad(f))"));
  auto const foreign = t.with_keys({vv::dispatch_key::private_use});
  CHECK_THROWS_AS(call(foreign, 2.0), vv::dispatch_error);

  tensor const leaf = counting({3, 4}).requires_grad_();
  CHECK_THROWS_AS(call(leaf, 2.0), vv::autograd_error);
  CHECK_THROWS_WITH(call(leaf, 2.0), ContainsText("argument 0 requires grad") && ContainsText("x.detach()"));
  CHECK_THROWS_AS(call(leaf * 2.0, 2.0), vv::autograd_error);
  CHECK(call(leaf.detach(), 2.0).data<float>()[1] == 3);
  {
    vv::no_grad const off;
    CHECK(call(leaf, 2.0).data<float>()[1] == 3);
  }

  auto const write = [&](tensor const& r) { on_tensors.into(r)(t, 2.0); };
  CHECK_THROWS_WITH(write(wide), "varve: fuse: result 0 is float32[4, 3], expected float32[3, 4]");
  CHECK_THROWS_AS(write(vv::full({3, 4}, 0.0, vv::dtype::float64)), vv::dtype_error);
  CHECK_THROWS_WITH(write(vv::transpose(wide, 0, 1)), ContainsText("result 0 is not contiguous"));
  CHECK_THROWS_WITH(write(t), ContainsText("result 0 overlaps argument 0"));
  CHECK_THROWS_AS(write(leaf), vv::autograd_error);
  tensor const two = counting({2, 3, 4});
  CHECK_THROWS_AS(on_tensors.into(vv::reshape(vv::slice(vv::reshape(two, vv::dims{24}), 0, 4, 16), vv::dims{3, 4}))(
                      vv::select(two, 0, 0), 2.0),
                  vv::value_error);
  on_tensors.into(vv::select(two, 0, 1))(vv::select(two, 0, 0), 2.0); // side by side
  CHECK(two.data<float>()[23] == 23);
  constexpr auto both = vv::fuse<spec<float, 4>>([](auto x) { return std::pair(x * 2.0, vv::sum(x)); });
  tensor const four = counting({4});
  CHECK_THROWS_WITH(both.into(four, vv::select(four, 0, 1))(counting({4})), ContainsText("result 1 overlaps result 0"));
  CHECK(four.data<float>()[1] == 1);
  auto const version = out.version();
  CHECK_THROWS(on_tensors.into(out)(wide, 2.0));
  CHECK(out.data<float>()[1] == 1);
  CHECK(out.version() == version);
  tensor const frozen = [] {
    vv::inference_mode const on;
    return counting({3, 4});
  }();
  CHECK_THROWS_AS(write(frozen), vv::autograd_error);
  {
    vv::inference_mode const on;
    write(frozen);
  }
  CHECK(frozen.data<float>()[1] == 3);
}
TEST_CASE("fuse: indices out of range are refused before they address memory", "[fuse][tensor][error]") {
  constexpr auto f = [](auto const& x, auto const& i) {
    return vv::vmap(vv::grad(
        [](auto const& v, auto const& j) { return vv::sum(vv::square(vv::gather(v, vv::axis<0>, j))); }))(x, i);
  };
  constexpr auto fused = vv::fuse<spec<float, 3, 4>, spec<std::int64_t, 3, 2>>(f);
  constexpr auto tables = vv::fuse<spec<float, 3, 4>, spec<std::int64_t, 3, 2>>(f, vv::table_driven);
  constexpr auto sized = vv::fuse<spec<float, vv::dim<"n">, 4>, spec<std::int64_t, vv::dim<"n">, 2>>([](auto const& x,
                                                                                                        auto const& i) {
    return vv::scatter_add(vv::gather(x, vv::axis<1>, i), vv::axis<0>, i, vv::slice(x, vv::axis<1>, vv::range<0, 2>));
  });
  tensor const x = counting({3, 4}), i = vv::full({3, 2}, 1.0, vv::dtype::int64);
  auto at = [&](index_t k) -> std::int64_t& { return i.data<std::int64_t>()[k]; };
  CHECK(fused(x, i).data<float>()[9] == 4 * 9);
  for (std::int64_t wrong :
       {std::int64_t(4), std::int64_t(-1), std::int64_t(1) << 40, std::numeric_limits<std::int64_t>::min()}) {
    at(5) = wrong;
    CHECK_THROWS_AS(f(x, i), vv::index_error);
    CHECK_THROWS_AS(fused(x, i), vv::index_error);
    CHECK_THROWS_AS(tables(x, i), vv::index_error);
    CHECK_THROWS_AS(sized(x, i), vv::index_error);
    CHECK_THROWS_AS(vv::fuse(f)(tensor_ref<float const, 3, 4>(x), tensor_ref<std::int64_t const, 3, 2>(i)),
                    vv::index_error);
  }
  at(5) = 3; // a column that `x` has, of rows that the result does not have
  CHECK(fused(x, i).data<float>()[11] == 2 * 11);
  CHECK_THROWS_WITH(sized(x, i), ContainsText("scatter_add: index 3 is out of range for size 3"));
  constexpr auto single = vv::fuse<spec<float>, spec<std::int64_t>>(
      [](auto const& a, auto const& k) { return vv::gather(a, vv::axis<0>, k); });
  CHECK(single(2.0, 0).item<float>() == 2);
  CHECK_THROWS_AS(single(2.0, 1), vv::index_error);
}
TEST_CASE("fuse: what counts along an axis is read from memory by the loops after the one that stored it",
          "[fuse][tensor]") {
  constexpr auto f = [](auto const& k) {
    auto const o = vv::one_hot(k, vv::axis<4>);
    return std::tuple(o, vv::slice(o, vv::axis<0>, vv::range<1, 2>) + 1, vv::sum(o));
  };
  auto check = [&](std::tuple<tensor, tensor, tensor> const& y) {
    auto const& [o, next, all] = y;
    for (index_t i = 0; i < 4; ++i) CHECK(o.data<std::int64_t>()[i] == (i == 1));
    CHECK(next.data<std::int64_t>()[0] == 2);
    CHECK(all.item<std::int64_t>() == 1);
  };
  tensor const k = vv::full({}, 1.0, vv::dtype::int64);
  check(f(k));
  check(vv::fuse<spec<std::int64_t>>(f)(k));
  check(vv::fuse<spec<std::int64_t>>(f, vv::table_driven)(k));
  check(vv::compile(f)(k));
}
TEST_CASE("fuse: parts of a value are joined again", "[fuse][tensor]") {
  constexpr auto f = [](auto const& x) {
    return std::pair(vv::cat(vv::split(x, vv::axis<2>, vv::axis<0>), vv::axis<1>),
                     vv::stack(vv::unbind(x, vv::axis<1>), vv::axis<1>));
  };
  tensor const x = counting({4, 3});
  auto const [wide, same] = vv::fuse<spec<float, 4, 3>>(f)(x);
  CHECK(wide.sizes() == vv::dims{2, 6});
  for (index_t k = 0; k < 12; ++k)
    CHECK(wide.data<float>()[k] == static_cast<float>(k % 6 < 3 ? k / 6 * 3 + k % 6 : 6 + k / 6 * 3 + k % 6 - 3));
  for (index_t k = 0; k < 12; ++k) CHECK(same.data<float>()[k] == static_cast<float>(k));
}

TEST_CASE("fuse: temporaries of many megabytes do not lie on the stack", "[fuse]") {
  constexpr index_t n = 3000000; // 12 MB each
  constexpr auto unrolled = vv::fuse<spec<float, n>>([](auto const& x) { return vv::softmax(x, vv::axis<0>); });
  tensor const x = vv::full({n}, 0.5f), y = unrolled(x);
  CHECK(y.data<float>()[0] == Approx(1.0 / n));
  CHECK(y.data<float>()[n - 1] == Approx(1.0 / n));
  constexpr auto walk = [](auto const& a) {
    return vv::scan([](auto const& c) { return std::pair{c + 1e-6 * vv::sin(c), vv::none}; }, a, vv::steps<1000000>)
        .first;
  };
  double const h = 1e-5, slope = vv::fuse(vv::grad(walk))(0.5); // keeps a million states
  CHECK(slope == Approx((vv::fuse(walk)(0.5 + h) - vv::fuse(walk)(0.5 - h)) / (2 * h)).epsilon(1e-6));
  constexpr auto in_table =
      vv::fuse<spec<float, n>>([](auto const& v) { return vv::softmax(v, vv::axis<0>); }, vv::table_driven);
  CHECK(in_table(x).data<float>()[n - 1] == Approx(1.0 / n));
}
