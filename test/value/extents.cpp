// SPDX-License-Identifier: BSL-1.0
// Sizes that are no numbers: what the shape rules make of them, and what they ask of the environment.
#include <varve/varve.hpp>

#include <algorithm>
#include <string>
#include <varve_test.hpp>
#include <vector>

namespace vv = varve;
using vv::dims;
using vv::extent;
using vv::index_t;
using vv::tensor;

namespace {
// Numbers are computed with as index_t is, mixed with integers of any type, in constant expressions.
constexpr extent six = 6;
static_assert(six + 2 == 8 && 2 + six == 8 && six - 7 == -1 && 7 - six == 1 && six * six == 36 && 2u * six == 12);
static_assert(six / 4 == 1 && six % 4 == 2 && 13 / six == 2 && 13 % six == 1);
static_assert(extent(-7) / 2 == -4 && extent(-7) % 2 == 1, "rounded down");
static_assert(six == 6 && 6 == six && six != 7 && six < 7L && 5 < six && six <= 6 && six >= 6 && six > 5 && !(six > 6));
static_assert(min(six, 4) == 4 && max(six, 4) == 6 && -six == -6 && six * 0.5 == 3.0);
static_assert(extent(vv::end) == INT64_MAX && six < vv::end && extent(vv::end).is_number());
static_assert([] {
  extent e = 2;
  e += 3, e *= 4, e -= 2, e /= 3; // 6
  ++e, --e;
  index_t n = e;
  n += e;
  int const as[] = {0, 1, 2, 3, 4, 5, 6};
  return n + as[e];
}() == 18);
static_assert(static_cast<vv::dtype>(extent(static_cast<index_t>(vv::dtype::int64))) == vv::dtype::int64);
static_assert(sizeof(extent) == 8 && sizeof(dims) == 72 && std::is_trivially_copyable_v<extent>);
template <extent E>
inline constexpr index_t of_parameter = E; // a structural type
static_assert(of_parameter<six> == 6);
// Lists of them: equality, mixed construction, and what stands in a spec.
static_assert(dims{2, six, 3L} == dims{2, 6, 3} && dims{2, 6} != dims{2, 7} && dims{2} != dims{2, 2});
static_assert(dims{1, 2}.contains(2) && !dims{1, 2}.contains(3) && numel(dims{2, 3, 4}) == 24);
static_assert(known_equal(dims{2, 3}, dims{2, 3}) && !known_equal(dims{2, 3}, dims{3, 2}));
static_assert(vv::contiguous_strides({2, 3, 4}) == dims{12, 4, 1} && vv::broadcast({3, 1}, {2}) == dims{3, 2});
constexpr extent name = vv::symbol("n");
static_assert(name == name && name != 4 && known_equal(name, vv::symbol("n")) && !known_equal(name, vv::symbol("m")));

/// Symbols with hints, which are at least 2; what was decided, as a list of conditions that hold.
struct environment final : vv::shape_recorder {
  vv::size_table table{};
  std::vector<index_t> hints{};
  std::vector<vv::size_range> ranges{};
  std::vector<std::string> guards{};

  extent symbol(char const* letters, index_t hint) {
    hints.push_back(hint);
    ranges.push_back({2, vv::size_range::unlimited});
    return ours(table.symbol(static_cast<int>(hints.size()) - 1, vv::symbol(letters)));
  }
  extent combine(vv::size_op op, extent a, extent b) override { return ours(table.combine(op, theirs(a), theirs(b))); }
  bool decide(vv::relation is, extent a, extent b) override {
    vv::truth const t = table.decide(is, theirs(a), theirs(b), ranges.data());
    if (t != vv::truth::unknown) return t == vv::truth::yes;
    bool const holds = vv::detail::holds(is, number(a), number(b));
    using enum vv::relation;
    vv::size_guard const g = holds           ? vv::size_guard{is, theirs(a), theirs(b)}
                             : is == equal   ? vv::size_guard{unequal, theirs(a), theirs(b)}
                             : is == unequal ? vv::size_guard{equal, theirs(a), theirs(b)}
                                             : vv::size_guard{is == less ? less_equal : less, theirs(b), theirs(a)};
    guards.push_back(table.view().text(g));
    return holds;
  }
  index_t specialize(extent a) override {
    guards.push_back(text(a) + " == " + std::to_string(number(a)));
    return number(a);
  }
  std::string text(extent a) const override { return table.view().text(theirs(a)); }
  index_t number(extent a) const { return table.view().evaluate(theirs(a), hints.data()); }

private:
  static extent theirs(extent a) { return a.is_entry() ? extent::entry(a.entry()) : a; }
  extent ours(extent a) const { return a.is_entry() ? here(a.entry()) : a; }
};

struct fixture {
  environment env;
  extent n = env.symbol("n", 5), m = env.symbol("m", 7);

  tensor meta(dims const& sizes) const { return tensor::meta(sizes, vv::dtype::float32); }
  std::string shape(tensor const& t) const { return vv::to_string(t.sizes()); }
};
using texts = std::vector<std::string>;
} // namespace

TEST_CASE("extents: operations on symbols give expressions, and ask for nothing", "[value][extents]") {
  fixture f;
  CHECK(f.env.text(f.n * 2 + f.n - 1) == "3*n - 1");
  CHECK(f.env.text(6 * f.n / 3) == "2*n");
  CHECK(f.env.text((f.n + 1) % 2) == "(n + 1)%2");
  CHECK(f.env.text(max(f.n, f.m)) == "max(n, m)");
  CHECK(f.n - f.n == 0);
  CHECK(f.n * 0 == 0);
  CHECK(min(f.n, vv::end) == f.n);
  CHECK(f.n < vv::end);
  CHECK(f.n != 1);
  CHECK(numel(dims{f.n, 8}) == 8 * f.n);
  CHECK(f.env.guards.empty());
}

TEST_CASE("extents: what is decided is recorded with both sides", "[value][extents]") {
  fixture f;
  CHECK(f.n != f.m);
  CHECK(f.n < f.m);
  CHECK(!(f.m <= f.n));
  CHECK(f.n == 5);
  CHECK(f.env.guards == texts{"n != m", "n < m", "n < m", "n == 5"});
  f.env.guards.clear();
  CHECK(!known_equal(f.n, 5));
  CHECK(!known_equal(dims{f.n, f.m}, dims{5, f.m}));
  CHECK(!(vv::meta{vv::dtype::float32, {f.n}} == vv::meta{vv::dtype::float32, {5}}));
  CHECK(f.env.guards.empty());
  index_t const taken = f.n + 2;
  CHECK(taken == 7);
  CHECK(f.env.guards == texts{"n + 2 == 7"});
  CHECK(vv::to_string(dims{f.n, 2 * f.m, 3}) == "[n, 2*m, 3]");
}

TEST_CASE("extents: the rules of operators keep symbols", "[value][extents]") {
  fixture f;
  tensor const x = f.meta({f.n, 8}), row = f.meta({8}), column = f.meta({f.n, 1}), w = f.meta({8, 3});
  CHECK(f.shape(x + row) == "[n, 8]");
  CHECK(f.shape(row * column) == "[n, 8]");
  CHECK(f.shape(vv::sin(x)) == "[n, 8]");
  CHECK(f.shape(vv::mm(x, w)) == "[n, 3]");
  CHECK(f.shape(vv::matmul(f.meta({f.m, f.n, 8}), w)) == "[m, n, 3]");
  CHECK(f.shape(vv::sum(x, vv::axis<0>)) == "[8]");
  CHECK(f.shape(vv::sum(x, vv::axis<1>, vv::keepdim)) == "[n, 1]");
  CHECK(f.shape(vv::amax(x, vv::axis<1>)) == "[n]");
  CHECK(f.shape(vv::mean(x, vv::axis<1>)) == "[n]");
  CHECK(f.shape(vv::reshape(x, dims{-1})) == "[8*n]");
  CHECK(f.shape(vv::reshape(x, dims{-1, 2})) == "[4*n, 2]");
  CHECK(f.shape(vv::reshape(x, dims{f.n, 2, -1})) == "[n, 2, 4]");
  CHECK(f.shape(vv::reshape(vv::transpose(x), dims{-1})) == "[8*n]");
  CHECK(f.shape(vv::permute(x, vv::axis<1, 0>)) == "[8, n]");
  CHECK(f.shape(vv::transpose(f.meta({f.n, f.m}))) == "[m, n]");
  CHECK(f.shape(vv::slice(x, 0, 1, vv::end)) == "[n - 1, 8]");
  CHECK(f.shape(vv::slice(x, 0, 0, -1)) == "[n - 1, 8]");
  CHECK(f.shape(vv::slice(x, 1, 2, 6)) == "[n, 4]");
  CHECK(f.shape(vv::slice(x, 0, 0, f.n, 2)) == "[(n + 1)//2, 8]");
  CHECK(f.shape(vv::select(x, 0, 1)) == "[8]");
  CHECK(f.shape(vv::cat(std::tuple(x, f.meta({f.m, 8})), 0)) == "[n + m, 8]");
  CHECK(f.shape(vv::softmax(x, vv::axis<1>)) == "[n, 8]");
  CHECK(f.shape(vv::softmax(x, vv::axis<0>)) == "[n, 8]");
  CHECK(f.shape(vv::expand(column, dims{f.n, f.m})) == "[n, m]");
  CHECK(f.shape(vv::expand(row, dims{f.n, -1})) == "[n, 8]");
  CHECK(f.shape(vv::unsqueeze(x, 1)) == "[n, 1, 8]");
  CHECK(f.shape(vv::to(x, vv::dtype::float64)) == "[n, 8]");
  CHECK(vv::transpose(x).strides() == dims{1, 8});
  CHECK(f.meta({8, f.n}).strides() == dims{f.n, 1});
  CHECK(x.is_contiguous());
  CHECK(!vv::transpose(x).is_contiguous());
  CHECK(f.env.guards == texts{});
}

TEST_CASE("extents: a slice at a number asks whether the axis is as long", "[value][extents]") {
  fixture f;
  CHECK(f.shape(vv::slice(f.meta({f.n, 8}), 0, 0, 4)) == "[4, 8]");
  CHECK(f.env.guards == texts{"4 <= n"});
}

TEST_CASE("extents: operands that meet decide that their sizes are equal", "[value][extents]") {
  fixture f;
  extent const k = f.env.symbol("k", 5);
  CHECK(vv::add(f.meta({f.n}), f.meta({k})).dim() == 1);
  CHECK(f.env.guards == texts{"n == k"});
  f.env.guards.clear();
  CHECK_THROWS_WITH(vv::add(f.meta({f.n, 2}), f.meta({f.m, 2})), ContainsText("[n, 2]") && ContainsText("[m, 2]"));
  CHECK_THROWS_AS(vv::mm(f.meta({2, f.n}), f.meta({f.m, 2})), vv::shape_error);
  CHECK(f.env.guards == texts{"n != m", "n != m"});
}

TEST_CASE("extents: derivatives and mapped functions keep symbols", "[value][extents]") {
  fixture f;
  tensor const w = f.meta({8, 3}), x = f.meta({f.n, 8});
  auto const loss = [&](auto const& v) {
    return vv::sum(vv::log_softmax(vv::add(vv::mm(v, w), f.meta({3})), vv::axis<1>));
  };
  CHECK(f.shape(vv::grad(loss)(x)) == "[n, 8]");
  CHECK(f.env.guards == texts{});
  auto const row = [&](auto const& v) { return vv::sum(vv::softmax(vv::matmul(v, w), vv::axis<0>) * 2.0f); };
  CHECK(f.shape(vv::vmap(row)(x)) == "[n]");
  CHECK(f.shape(vv::vmap(vv::grad(row))(x)) == "[n, 8]");
  CHECK(f.shape(std::get<1>(vv::jvp(loss, std::tuple(x), std::tuple(x)))) == "[]");
  CHECK(f.env.guards == texts{});
  tensor const leaf = f.meta({f.n, 8});
  leaf.requires_grad_();
  loss(leaf).backward();
  CHECK(f.shape(leaf.grad()) == "[n, 8]");
  CHECK(f.env.guards == texts{});
}

TEST_CASE("extents: rules of further operators, and writing in place, keep symbols", "[value][extents]") {
  fixture f;
  tensor const x = f.meta({f.n, 8}), row = f.meta({8}), images = f.meta({f.n, 3, 10, 10}), w = f.meta({4, 3, 3, 3});
  CHECK(f.shape(vv::conv2d(images, w)) == "[n, 4, 8, 8]");
  CHECK(f.shape(vv::grad([&](auto const& v) { return vv::sum(vv::conv2d(v, w)); })(images)) == "[n, 3, 10, 10]");
  CHECK(f.shape(vv::layer_norm(x, vv::axis<8>)) == "[n, 8]");
  CHECK(f.shape(vv::split(x, 4, 1)[1]) == "[n, 4]");
  CHECK(f.shape(vv::grad([&](auto const& v) { return vv::sum(vv::slice(v, 0, 1, vv::end)); })(x)) == "[n, 8]");
  CHECK(f.shape(vv::grad([&](auto const& v) { return vv::sum(vv::mul(x, v)); })(row)) == "[8]");
  auto const written = [&](auto const& v) {
    auto y = vv::mul(v, 1.0f);
    vv::add_(vv::slice(y, 0, 1, vv::end), row);
    return y;
  };
  CHECK(f.shape(written(x)) == "[n, 8]");
  CHECK(f.shape(vv::functionalize(written)(x)) == "[n, 8]");
  CHECK(f.shape(vv::grad([&](auto const& v) { return vv::sum(written(v)); })(x)) == "[n, 8]");
  CHECK(f.env.guards == texts{});
  CHECK_THROWS_AS(vv::add_(row, x), vv::shape_error);
}

TEST_CASE("extents: memory has numbers only", "[value][extents]") {
  fixture f;
  tensor const x = vv::zeros({5, 1}, vv::dtype::float32);
  auto const check = [&](tensor const& t, dims const& sizes, char const* asked) {
    CHECK(t.has_data());
    CHECK(known_equal(t.sizes(), sizes));
    CHECK(t.is_contiguous() == t.where().contiguous());
    CHECK(std::count(f.env.guards.begin(), f.env.guards.end(), asked) > 0);
    f.env.guards.clear();
  };
  check(vv::zeros({f.n, 3}, vv::dtype::float32), {5, 3}, "n == 5");
  check(vv::reshape(x, dims{f.n}), {5}, "n == 5");
  check(vv::reshape(x, dims{f.n, -1}), {5, 1}, "n == 5");
  check(vv::expand(x, dims{-1, f.m}), {5, 7}, "m == 7");
  check(vv::slice(x, 0, 0, f.n), {5, 1}, "n <= 5");
  check(vv::slice(x, 0, f.n - 1, vv::end), {1, 1}, "n - 1 == 4");
  check(vv::grad([&](auto const& v) { return vv::sum(vv::slice(v, 0, 0, f.n)); })(x), {5, 1}, "n == 5");
  CHECK(vv::expand(x, dims{-1, f.m}).strides() == dims{1, 0});
}

TEST_CASE("extents: a public size is a number where it is taken for one, and says so to the environment",
          "[value][extents]") {
  fixture f;
  tensor const x = f.meta({f.n, 8});
  CHECK(dims{x.size(0), x.size(-1)} == x.sizes());
  CHECK(f.env.guards.empty());
  index_t const n = x.size(0);
  CHECK(n == 5);
  CHECK(x.numel() == 40);
  CHECK(f.env.guards == texts{"n == 5", "8*n == 40"});
}

TEST_CASE("extents: sizes without their environment are refused", "[value][extents]") {
  dims gone;
  tensor x;
  {
    fixture f;
    gone = {f.n, 8};
    x = f.meta(gone);
    fixture other; // of another environment
    CHECK_THROWS_AS(f.n + other.n, vv::size_error);
    CHECK_THROWS_AS(f.n == other.n, vv::size_error);
  }
  fixture later; // has another number
  CHECK_THROWS_AS(static_cast<index_t>(gone[0]), vv::size_error);
  CHECK_THROWS_WITH(gone[0] + 1, ContainsText("environment was destroyed"));
  CHECK_THROWS_AS(x + later.meta({later.n, 8}), vv::size_error);
  CHECK_THROWS_AS(x.numel(), vv::size_error);
  CHECK(known_equal(x.sizes(), gone)); // structural: asks nobody
  CHECK(vv::to_string(gone) == "[expression 0, 8]");
  // Finished graphs and specs: compared, and not computed with.
  extent const entry = extent::entry(3);
  CHECK(entry == entry);
  CHECK(entry != 3);
  CHECK_THROWS_AS(entry * 2, vv::size_error);
  CHECK_THROWS_AS(entry < 2, vv::size_error);
  CHECK_THROWS_AS(static_cast<index_t>(vv::symbol("n") + extent(1)), vv::size_error);
}
