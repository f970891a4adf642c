// SPDX-License-Identifier: BSL-1.0
#include <varve/op/all.hpp>

#include <cstdint>
#include <fstream>
#include <sys/resource.h>
#include <thread>
#include <varve_test.hpp>
#include <vector>

namespace vv = varve;
using vv::tensor, vv::detail::data_memory;

TEST_CASE("memory of tensors: classes hold what they are asked for and waste a quarter at most", "[value][memory]") {
  int last = 0;
  for (std::size_t n = 65; n <= data_memory::greatest; n += n < 5000 ? 1 : n / 7) {
    int const k = data_memory::class_of(n);
    CHECK((k >= last && k < data_memory::classes));
    CHECK((data_memory::bytes_of(k) >= n && (k == 0 || data_memory::bytes_of(k - 1) < n)));
    CHECK(data_memory::bytes_of(k) * 4 <= n * 5 + 64);
    last = k;
  }
}
TEST_CASE("memory of tensors: aligned, used again, bounded, released", "[value][memory]") {
  vv::release_memory();
  auto const& kept = vv::detail::this_thread_data;
  CHECK(kept.bytes == 0);
  for (vv::index_t n : {17, 64, 1000, 300000, 20000000}) {
    void const* first = nullptr;
    {
      tensor const t = vv::zeros({n});
      first = t.raw();
      CHECK(reinterpret_cast<std::uintptr_t>(first) % 64 == 0);
      tensor const part = vv::slice(t, 0, 1, 5);
      tensor const other = part + 1; // inside of its block
    }
    if (VARVE_RECYCLE_BLOCKS && n * 4 <= static_cast<vv::index_t>(data_memory::greatest)) {
      CHECK(kept.bytes > 0);
      CHECK(vv::empty({n}).raw() == first);
    }
    vv::release_memory();
    CHECK(kept.bytes == 0);
  }
  {
    std::vector<tensor> many;
    for (int k = 0; k < 80; ++k) many.push_back(vv::empty({(1 << 19) + 100000 * (k % 9)}));
  }
  CHECK(kept.bytes <= data_memory::most);
  vv::release_memory();
}
TEST_CASE("memory of tensors: freed by another thread, and at a thread's end", "[value][memory]") {
  vv::release_memory();
  tensor t = vv::full({1000}, 3);
  std::thread([&] {
    tensor const mine = t * 2;
    CHECK(mine.data<std::int64_t>()[999] == 6);
    t = tensor();
    CHECK((!VARVE_RECYCLE_BLOCKS || vv::detail::this_thread_data.bytes > 0));
  }).join();
  CHECK(vv::detail::this_thread_data.bytes == 0);
}
TEST_CASE("memory of tensors: what is kept is given back before there is none", "[value][memory]") {
  {
    std::vector<tensor> many;
    for (int k = 0; k < 12; ++k) many.push_back(vv::ones({2500000}));
  }
  if (!VARVE_RECYCLE_BLOCKS) { // for sanitizers
    CHECK(vv::detail::this_thread_data.bytes == 0);
    return;
  }
  CHECK(vv::detail::this_thread_data.bytes > 100u << 20);
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  REQUIRE(pages > 0);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlimit narrow = before;
  narrow.rlim_cur = pages * 4096 + (20u << 20);
  REQUIRE(setrlimit(RLIMIT_AS, &narrow) == 0);
  bool made = false;
  try {
    made = vv::empty({20000000}).numel() == 20000000; // 80 MB
  } catch (std::bad_alloc const&) {}
  setrlimit(RLIMIT_AS, &before);
  CHECK(made);
  vv::release_memory();
}
