// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/nn/init.hpp>
#include <varve/optim.hpp>
#include <varve/varve.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>

#if defined(__linux__)
#include <fcntl.h>
#include <unistd.h>
#endif

namespace vv = varve;
namespace optim = varve::optim;
using vv::array;
using vv::tensor;

namespace {
std::string text_of(std::FILE* f) {
  std::string r;
  std::rewind(f);
  for (int c; (c = std::fgetc(f)) != EOF;) r += static_cast<char>(c);
  return r;
}
std::size_t count_of(std::string const& s, char c) {
  return static_cast<std::size_t>(std::count(s.begin(), s.end(), c));
}
} // namespace

TEST_CASE("batches: in order, views of rows that belong together", "[optim]") {
  tensor const x = vv::reshape(vv::arange(14), vv::dims{7, 2}), y = vv::arange(7);
  std::vector<std::vector<std::int64_t>> seen;
  for (auto const& [a, b] : optim::batches(3, x, y)) {
    CHECK(a.size(0) == b.size(0));
    CHECK((a.size(1) == 2 && a[0][1].template item<int>() == 2 * b[0].template item<int>() + 1));
    seen.push_back(b.template to_vector<std::int64_t>());
  }
  CHECK(seen == std::vector<std::vector<std::int64_t>>{{0, 1, 2}, {3, 4, 5}, {6}});
  CHECK(optim::batches(3, x).size() == 3);
  CHECK(optim::batches(3, x).drop_last().size() == 2);
  CHECK(optim::batches(7, x).size() == 1);
  CHECK(optim::batches(8, x).drop_last().size() == 0);
  CHECK(optim::batches(8, x).size() == 1);
  for (auto const& [a] : optim::batches(7, x)) CHECK(a.raw() == x.raw());
  CHECK_THROWS_AS(optim::batches(3, x, vv::arange(6)), vv::shape_error);
  CHECK_THROWS_AS(optim::batches(0, x), vv::value_error);
  CHECK_THROWS_AS(optim::batches(1, tensor::from_number(2)), vv::value_error);
  for (auto const& [a] : optim::batches(2, vv::zeros({0, 3}))) FAIL("no row, no batch" << a.size(0));
}

TEST_CASE("batches: shuffled", "[optim]") {
  tensor const x = vv::arange(100);
  vv::generator g{7};
  auto const shuffled = optim::batches(32, x, x * 2).shuffled(g);
  std::vector<std::int64_t> epochs[2];
  for (auto& all : epochs)
    for (auto const& [a, b] : shuffled) {
      CHECK((a * 2).template to_vector<int>() == b.template to_vector<int>());
      for (auto v : a.template to_vector<std::int64_t>()) all.push_back(v);
    }
  CHECK(epochs[0] != epochs[1]); // each loop has an order of its own
  for (auto& all : epochs) {
    CHECK_FALSE(std::is_sorted(all.begin(), all.end()));
    CHECK(std::set<std::int64_t>(all.begin(), all.end()).size() == 100);
  }
  vv::generator again{7};
  std::vector<vv::index_t> const order = optim::shuffled_indices(100, again);
  CHECK(std::vector<std::int64_t>(order.begin(), order.end()) == epochs[0]); // by the seed alone
  vv::manual_seed(7);
  std::vector<std::int64_t> own;
  for (auto const& [a] : optim::batches(32, x).shuffled())
    for (auto v : a.template to_vector<std::int64_t>()) own.push_back(v);
  CHECK(own == epochs[0]);
}

TEST_CASE("batches: every order of three is equally likely", "[optim]") {
  vv::generator g{1};
  std::vector<int> counts(27);
  for (int k = 0; k < 6000; ++k) {
    auto const o = optim::shuffled_indices(3, g);
    ++counts[static_cast<std::size_t>(9 * o[0] + 3 * o[1] + o[2])];
  }
  for (int code : {5, 7, 11, 15, 19, 21}) {
    CHECK(counts[static_cast<std::size_t>(code)] > 880); // 1000 +- 29
    CHECK(counts[static_cast<std::size_t>(code)] < 1120);
  }
  CHECK(optim::shuffled_indices(0, g).empty());
}

TEST_CASE("batches: of arrays, in the compiler too", "[optim]") {
  constexpr auto sum_of_products = [] {
    array<double, 5, 2> const x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    array<double, 5> const y{1, 2, 3, 4, 5};
    double r = 0;
    for (auto const& [a, b] : optim::batches(vv::axis<2>, x, y)) r += vv::sum(vv::matmul(b, a));
    return r;
  };
  STATIC_REQUIRE(sum_of_products() == 3 + 2 * 7 + 3 * 11 + 4 * 15); // the fifth row has no batch
  array<std::int64_t, 6> const x{0, 1, 2, 3, 4, 5};
  vv::generator g{3};
  std::set<std::int64_t> all;
  for (auto const& [a] : optim::batches(vv::axis<2>, x).shuffled(g)) {
    STATIC_REQUIRE(std::is_same_v<decltype(a), array<std::int64_t, 2> const>);
    all.insert({a[0], a[1]});
  }
  CHECK(all.size() == 6);
}

TEST_CASE("progress: in a file there are lines, and no control characters", "[optim]") {
  std::FILE* f = std::tmpfile();
  REQUIRE(f);
  {
    optim::progress bar(1000, "epoch 1", f);
    for (int k = 0; k < 1000; ++k) {
      if (k == 99 || k == 150 || k == 199) std::this_thread::sleep_for(std::chrono::milliseconds(510));
      bar.advance("loss 0.5");
    }
    CHECK(bar.done() == 1000);
  }
  std::string const text = text_of(f);
  std::fclose(f);
  CHECK(count_of(text, '\n') == 3);
  CHECK(std::none_of(text.begin(), text.end(), [](char c) { return c != '\n' && (c < ' ' || c > '~'); }));
  CHECK_THAT(text, ContainsText("epoch 1: 100/1000 ") && ContainsText("\nepoch 1: 200/1000 "));
  CHECK_THAT(text, ContainsText("epoch 1: 1000/1000 "));
  CHECK_THAT(text, ContainsText(", loss 0.5\n"));
}

TEST_CASE("progress: of ranges, and of loops that end early or have no end", "[optim]") {
  std::FILE* f = std::tmpfile();
  REQUIRE(f);
  int n = 0;
  for (auto const& [a] : optim::progress_of(optim::batches(2, vv::arange(7)), "", f)) n += a.numel() > 0;
  CHECK(n == 4);
  CHECK_THAT(text_of(f), ContainsText("4/4 "));
  {
    std::vector<int> const v{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
    for (int x : optim::progress_of(v, "part", f))
      if (x == 3) break;
  }
  { optim::progress nothing(5, "nothing", f); }
  {
    optim::progress unknown(0, "unknown", f);
    unknown.advance();
  }
  std::string const text = text_of(f);
  std::fclose(f);
  CHECK_THAT(text, ContainsText("part: 2/23") && ContainsText("unknown: 1/0 ") && !ContainsText("nothing"));
}

#if defined(__linux__)
TEST_CASE("progress: on a terminal one line is written anew", "[optim]") {
  int const master = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) {
    WARN("no terminals here");
    SUCCEED();
    return;
  }
  std::FILE* f = std::fopen(::ptsname(master), "w");
  REQUIRE(f);
  {
    optim::progress bar(3, "epoch", f);
    bar.advance("a long note that goes");
    bar.advance("short"), bar.advance();
  }
  std::string text;
  char buffer[4096];
  while (count_of(text, '\n') == 0) {
    ::ssize_t const n = ::read(master, buffer, sizeof buffer);
    REQUIRE(n > 0);
    text.append(buffer, static_cast<std::size_t>(n));
  }
  std::fclose(f);
  ::close(master);
  CHECK(text.front() == '\r');
  CHECK(count_of(text, '\n') == 1);
  CHECK_THAT(text, ContainsText("\repoch: 3/3 [########################] ") && ContainsText("short"));
}
#endif

TEST_CASE("init: fans, deviations and bounds", "[nn]") {
  auto const moments = [](tensor const& w) {
    double const mean = w.mean().item();
    return std::pair(mean, vv::sqrt(((w - mean) * (w - mean)).mean()).item());
  };
  vv::manual_seed(5);
  for (bool uniform : {false, true}) {
    tensor const x = uniform ? vv::xavier_uniform({200, 300}, 2, vv::dtype::float64)
                             : vv::xavier_normal({200, 300}, 2, vv::dtype::float64);
    double const expected = 2 * std::sqrt(2.0 / 500);
    CHECK(moments(x).second == Approx(expected).epsilon(0.02));
    CHECK(moments(x).first == Approx(0).margin(expected / 80));
    double const most = vv::amax(vv::abs(x)).item();
    if (uniform) CHECK((most <= expected * std::sqrt(3.0) && most > expected * 1.7));
    else CHECK(most > expected * 3);
    tensor const k = uniform ? vv::kaiming_uniform({100, 20, 3, 5}, vv::fan::in, 0.5)
                             : vv::kaiming_normal({100, 20, 3, 5}, vv::fan::in, 0.5);
    CHECK(k.dtype() == vv::dtype::float32);
    CHECK(moments(k).second == Approx(std::sqrt(2 / 1.25 / 300)).epsilon(0.02));
    CHECK(moments(vv::kaiming_normal({300, 100, 2}, vv::fan::out)).second ==
          Approx(std::sqrt(2.0 / 600)).epsilon(0.02));
  }
  CHECK_THROWS_AS(vv::xavier_normal({3}), vv::value_error);
  CHECK(vv::kaiming_normal({3, 0}).numel() == 0);
}

TEST_CASE("init: arrays and tensors of one seed are the same", "[nn]") {
  vv::generator g{11};
  auto const a = vv::xavier_uniform<double, 4, 6>(g);
  auto const b = vv::kaiming_normal<float, 2, 3, 2>(g);
  vv::manual_seed(11);
  CHECK(vv::amax(vv::abs(vv::xavier_uniform({4, 6}, 1, vv::dtype::float64) - tensor(a))).item() < 1e-15);
  CHECK(vv::amax(vv::abs(vv::kaiming_normal({2, 3, 2}) - tensor(b))).item() < 1e-6);
  constexpr auto known = [] {
    vv::generator g{1};
    return vv::kaiming_uniform<float, 2, 2>(g);
  }();
  CHECK(vv::amax(vv::abs(known)) <= 1.7320509f);
}
