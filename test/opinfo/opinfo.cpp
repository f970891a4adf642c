// SPDX-License-Identifier: BSL-1.0
#include "calls.hpp"

#include <varve/fake.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vjp.hpp>

#include <algorithm>
#include <filesystem>
#include <varve_test.hpp>

using namespace opinfo;
namespace vv = varve;

namespace {
/// Calls `g` with a sequence of `n` numbers, 1 <= n <= 3.
template <class G>
void with_count(std::size_t n, G const& g) {
  if (n == 1) g(std::make_index_sequence<1>{});
  else if (n == 2) g(std::make_index_sequence<2>{});
  else if (n == 3) g(std::make_index_sequence<3>{});
}
/// A case as a function of the operands at some places.
struct of_places {
  recorded const& c;
  std::vector<std::size_t> at;
  template <class... V>
  tensor operator()(V const&... v) const {
    values x = c.operands;
    std::size_t k = 0;
    ((x[at[k++]] = v), ...);
    return calls().at(c.op)(x, c.ints);
  }
};
std::vector<std::size_t> keys(std::map<std::size_t, tensor> const& m) {
  std::vector<std::size_t> r;
  for (auto const& e : m) r.push_back(e.first);
  return r;
}
double tolerance(tensor const& t) { return t.dtype() == dtype::float32 ? 1e-5 : 1e-9; }

template <class F>
void for_each_case(F const& f) {
  std::vector<std::filesystem::path> files;
  for (auto const& e : std::filesystem::directory_iterator(VARVE_TEST_DIR "/opinfo/data"))
    if (e.path().extension() == ".txt") files.push_back(e.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() > 50);
  for (auto const& file : files)
    for (auto const& c : read(file.string())) {
      INFO(file.filename().string() << ":" << c.line << " " << c.op);
      f(c);
    }
}
} // namespace

TEST_CASE("recorded cases: values are those of PyTorch", "[opinfo]") {
  for_each_case([](recorded const& c) {
    if (c.refused) return;
    REQUIRE(calls().count(c.op) == 1);
    tensor y;
    CHECK_NOTHROW(y = calls().at(c.op)(c.operands, c.ints));
    if (y.defined()) CHECK(difference(y, c.gives, tolerance(y)) == "");
  });
}

TEST_CASE("recorded cases: gradients are those of PyTorch", "[opinfo]") {
  for_each_case([](recorded const& c) {
    if (c.gradient.empty()) return;
    of_places const f{c, keys(c.gradient)};
    with_count(f.at.size(), [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto run = [&] {
        auto const g = vv::vjp(f, c.operands[f.at[K]]...).second(c.cotangent);
        auto agree = [&](tensor const& mine, tensor const& theirs) {
          CHECK(difference(mine, theirs, tolerance(theirs)) == "");
        };
        (agree(std::get<K>(g), c.gradient.at(f.at[K])), ...);
      };
      CHECK_NOTHROW(run());
    });
  });
}

TEST_CASE("recorded cases: tangents are those of PyTorch", "[opinfo]") {
  for_each_case([](recorded const& c) {
    if (c.tangent.empty() || !c.moves.defined()) return;
    of_places const f{c, keys(c.tangent)};
    with_count(f.at.size(), [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto run = [&] {
        CHECK(difference(vv::jvp(f, std::tuple(c.operands[f.at[K]]...), std::tuple(c.tangent.at(f.at[K])...)).second,
                         c.moves, tolerance(c.moves)) == "");
      };
      CHECK_NOTHROW(run());
    });
  });
}

TEST_CASE("recorded cases: what PyTorch refuses is refused by name", "[opinfo]") {
  int refused = 0;
  for_each_case([&](recorded const& c) {
    if (!c.refused) return;
    ++refused;
    std::vector<std::vector<double>> before;
    for (auto const& t : c.operands) before.push_back(elements(t));
    CHECK_THROWS_AS(calls().at(c.op)(c.operands, c.ints), vv::error);
    CHECK(vv::this_thread_state.quiet());
    for (std::size_t k = 0; k < before.size(); ++k) {
      CHECK(elements(c.operands[k]) == before[k]);
      CHECK(c.operands[k].version() == 0);
    }
  });
  CHECK(refused > 10);
}

TEST_CASE("recorded cases: fake tensors have the shape, dtype and layout of real ones", "[opinfo][fake]") {
  for_each_case([](recorded const& c) {
    if (c.refused) return;
    vv::fake_mode mode;
    values fakes;
    for (auto const& t : c.operands) fakes.push_back(mode.from_tensor(t));
    vv::fake_mode_guard const on(mode);
    auto const alike = [&](tensor const& fake, tensor const& real) {
      CHECK(mode.owns(fake));
      CHECK(fake.dtype() == real.dtype());
      CHECK(fake.sizes() == real.sizes());
      if (real.numel() > 1) CHECK(fake.strides() == real.strides());
    };
    tensor fake, real;
    CHECK_NOTHROW(fake = calls().at(c.op)(fakes, c.ints));
    {
      vv::disable_modes const plain;
      real = calls().at(c.op)(c.operands, c.ints);
    }
    if (fake.defined()) alike(fake, real);
    if (c.gradient.empty()) return;
    of_places f{c, keys(c.gradient)};
    recorded of_fakes = c;
    of_fakes.operands = fakes;
    of_places const g{of_fakes, f.at};
    with_count(f.at.size(), [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto run = [&] {
        auto const fake_gradients = vv::vjp(g, fakes[f.at[K]]...).second(mode.from_tensor(c.cotangent));
        vv::disable_modes const plain;
        auto const gradients = vv::vjp(f, c.operands[f.at[K]]...).second(c.cotangent);
        (alike(std::get<K>(fake_gradients), std::get<K>(gradients)), ...);
      };
      CHECK_NOTHROW(run());
    });
  });
}
