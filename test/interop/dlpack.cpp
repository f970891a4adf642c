// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/interop/dlpack.hpp>
#include <varve/varve.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <vector>

namespace vv = varve;
using vv::dims;
using vv::tensor;

namespace {
int released = 0;
} // namespace

TEST_CASE("from_blob: who owns the memory is told once, when nobody needs it", "[value]") {
  std::vector<double> memory{1, 2, 3, 4, 5, 6};
  int told = 0;
  auto const release = [](void* p) { ++*static_cast<int*>(p); };
  {
    tensor const x = tensor::from_blob(memory.data(), {2, 3}, {3, 1}, vv::dtype::float64, release, &told);
    tensor const view = x[1];
    {
      tensor const y = x.t(), z = x.detach();
      CHECK(y[2][1].item() == 6);
      CHECK(z[0][0].item() == 1);
    }
    CHECK(told == 0);
    vv::add_(view, 1);
  }
  CHECK(memory[5] == 7);
  CHECK(told == 1);
  {
    tensor x = tensor::from_blob(memory.data(), {6}, {1}, vv::dtype::float64, release, &told);
    tensor const part = vv::slice(x, vv::axis<0>, 2, 4);
    x = tensor();
    CHECK(told == 1);
    CHECK(part.to_vector() == std::vector<double>{3, 5});
  }
  CHECK(told == 2);
  tensor::from_blob(memory.data(), {0}, {1}, vv::dtype::float64, release, &told);
  CHECK(told == 3);
  { // kept by a graph of autograd until that goes
    tensor w = vv::ones({6}, vv::dtype::float64);
    w.requires_grad_();
    tensor y;
    {
      tensor const x = tensor::from_blob(memory.data(), {6}, {1}, vv::dtype::float64, release, &told);
      y = vv::sum(w * x);
    }
    CHECK(told == 3);
    y.backward();
    CHECK(w.grad().to_vector() == memory);
  }
  CHECK(told == 4);
}

#if __has_include(<dlpack/dlpack.h>)
namespace {
/// A foreign tensor in its own memory.
struct foreign {
  std::vector<double> memory;
  std::vector<std::int64_t> sizes, strides;
  DLManagedTensor managed{};
  foreign(std::vector<double> m, std::vector<std::int64_t> n, std::vector<std::int64_t> s)
      : memory(std::move(m)), sizes(std::move(n)), strides(std::move(s)) {
    DLTensor& t = managed.dl_tensor;
    t.data = memory.data();
    t.device = {kDLCPU, 0};
    t.ndim = static_cast<int>(sizes.size());
    t.dtype = {kDLFloat, 64, 1};
    t.shape = sizes.data();
    t.strides = strides.empty() ? nullptr : strides.data();
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) {
      CHECK(self == &static_cast<foreign*>(self->manager_ctx)->managed);
      ++released;
    };
  }
};
template <class F>
std::string refusal(F const& change) {
  foreign f({1, 2, 3, 4, 5, 6}, {2, 3}, {3, 1});
  change(f.managed.dl_tensor);
  released = 0;
  try {
    vv::from_dlpack(&f.managed);
  } catch (vv::error const& e) {
    CHECK(released == 0); // what is refused stays the caller's
    return e.what();
  }
  return "nothing was refused";
}
} // namespace

TEST_CASE("dlpack: foreign memory without a copy, its deleter called once", "[dlpack]") {
  foreign f({1, 2, 3, 4, 5, 6}, {2, 3}, {});
  released = 0;
  {
    tensor const x = vv::from_dlpack(&f.managed);
    CHECK(x.raw() == f.memory.data());
    CHECK(x.is_contiguous());
    CHECK(vv::sum(x).item() == 21);
    tensor const row = x[1];
    vv::mul_(row, 2);
    CHECK(f.memory[5] == 12);
    f.memory[0] = 100;
    CHECK(x[0][0].item() == 100);
    CHECK(vv::grad([](auto const& v) { return vv::sum(v * v); })(x)[0][0].item() == 200);
    CHECK(released == 0);
  }
  CHECK(released == 1);
}

TEST_CASE("dlpack: strides, offsets, ranks, sizes of 0 and 1", "[dlpack]") {
  released = 0;
  foreign columns({1, 2, 3, 4, 5, 6}, {2, 3}, {1, 2});
  CHECK(vv::from_dlpack(&columns.managed).to_vector() == std::vector<double>{1, 3, 5, 2, 4, 6});
  foreign shifted({1, 2, 3, 4, 5, 6}, {2}, {3});
  shifted.managed.dl_tensor.byte_offset = 16;
  CHECK(vv::from_dlpack(&shifted.managed).to_vector() == std::vector<double>{3, 6});
  foreign repeated({7}, {3}, {0});
  CHECK(vv::from_dlpack(&repeated.managed).to_vector() == std::vector<double>{7, 7, 7});
  foreign scalar({5}, {}, {});
  CHECK(vv::from_dlpack(&scalar.managed).dim() == 0);
  foreign one({5}, {1, 1}, {-9, 1000000}); // strides that are never taken
  CHECK(vv::from_dlpack(&one.managed).is_contiguous());
  foreign empty({}, {0, 4}, {});
  empty.managed.dl_tensor.data = nullptr;
  CHECK(vv::from_dlpack(&empty.managed).sizes() == dims{0, 4});
  CHECK(released == 6);
  foreign kept({1}, {1}, {});
  kept.managed.deleter = nullptr; // nobody wants to know
  CHECK(vv::from_dlpack(&kept.managed).item() == 1);
}

TEST_CASE("dlpack: what is refused, by its name", "[dlpack]") {
  CHECK_THAT(refusal([](DLTensor& t) { t.device.device_type = kDLCUDA; }),
             ContainsText("device of type 2") && ContainsText("bring it to the CPU"));
  CHECK_THAT(refusal([](DLTensor& t) { t.dtype = {kDLInt, 24, 1}; }), ContainsText("code 0, 24 bits"));
  CHECK_THAT(refusal([](DLTensor& t) { t.dtype.lanes = 4; }), ContainsText("4 lanes"));
  CHECK_THAT(refusal([](DLTensor& t) { t.ndim = 9; }), ContainsText("9") || ContainsText("eight"));
  CHECK_THAT(refusal([](DLTensor& t) { t.ndim = -1; }), ContainsText("-1 axes"));
  CHECK_THAT(refusal([](DLTensor& t) { t.shape = nullptr; }), ContainsText("no sizes"));
  CHECK_THAT(refusal([](DLTensor& t) { t.shape[1] = -3; }), ContainsText("axis 1 has the size -3"));
  CHECK_THAT(refusal([](DLTensor& t) { t.shape[0] = t.shape[1] = std::int64_t{1} << 40; }), ContainsText("no memory"));
  CHECK_THAT(refusal([](DLTensor& t) { t.strides[1] = -1; }), ContainsText("axis 1 has the stride -1"));
  CHECK_THAT(refusal([](DLTensor& t) { t.strides[0] = std::int64_t{1} << 61; }), ContainsText("beyond any memory"));
  CHECK_THAT(refusal([](DLTensor& t) { t.data = nullptr; }), ContainsText("no memory for the shape [2, 3]"));
  CHECK_THAT(refusal([](DLTensor& t) { t.byte_offset = 3; }), ContainsText("offset 3"));
  CHECK_THROWS_AS(vv::from_dlpack(nullptr), vv::value_error);
}

TEST_CASE("dlpack: numbers by chance are refused or taken, never worse", "[dlpack][fuzz]") {
  std::mt19937_64 random(5);
  int taken = 0;
  for (int k = 0; k < 20000; ++k) {
    foreign f({1, 2, 3, 4, 5, 6}, {2, 3}, {3, 1});
    f.sizes.resize(16), f.strides.resize(16);
    DLTensor& t = f.managed.dl_tensor;
    t.shape = f.sizes.data(), t.strides = f.strides.data();
    auto const number = [&] {
      std::int64_t const some[] = {0, 1, 2, -1, INT64_MAX, INT64_MIN, std::int64_t{1} << 60, std::int64_t{1} << 62};
      return random() % 2 ? some[random() % std::size(some)] : static_cast<std::int64_t>(random());
    };
    switch (random() % 5) {
    case 0:
      t.ndim = static_cast<int>(random() % 20) - 4;
      break;
    case 1:
      f.sizes[random() % 3] = number();
      break;
    case 2:
      f.strides[random() % 3] = number();
      break;
    case 3:
      t.dtype = {static_cast<std::uint8_t>(random() % 9), static_cast<std::uint8_t>(random()), 1};
      break;
    default:
      f.sizes[0] = number(), f.strides[1] = number(), t.ndim = 3;
    }
    try {
      tensor const x = vv::from_dlpack(&f.managed); // not read: the memory is what it says
      ++taken;
      CHECK((x.numel() >= 0 && x.dim() <= 8));
    } catch (vv::error const&) {}
  }
  CHECK((taken > 100 && taken < 19000));
}

TEST_CASE("dlpack: for others, with strides and offsets, kept alive until they are done", "[dlpack]") {
  DLManagedTensor* m = nullptr;
  {
    tensor const x = vv::reshape(vv::arange(12, vv::dtype::float32), dims{3, 4});
    tensor const part = vv::slice(x, vv::axis<1>, 1, 4, 2).t();
    m = vv::to_dlpack(part);
    CHECK(m->dl_tensor.data == static_cast<float*>(x.raw()) + 1);
  }
  DLTensor const& t = m->dl_tensor;
  REQUIRE(t.ndim == 2);
  CHECK((t.shape[0] == 2 && t.shape[1] == 3 && t.strides[0] == 2 && t.strides[1] == 4));
  CHECK((t.dtype.code == kDLFloat && t.dtype.bits == 32 && t.dtype.lanes == 1 && t.device.device_type == kDLCPU));
  CHECK(static_cast<float*>(t.data)[2 + 4] == 7);
  // And back: the same memory, and one owner less when it goes.
  {
    tensor const back = vv::from_dlpack(m);
    CHECK(back.to_vector() == std::vector<double>{1, 5, 9, 3, 7, 11});
  }
  for (auto type : {vv::dtype::bool_, vv::dtype::uint8, vv::dtype::int8, vv::dtype::int16, vv::dtype::int32,
                    vv::dtype::int64, vv::dtype::float16, vv::dtype::bfloat16, vv::dtype::float64}) {
    tensor const x = tensor::empty({2, 0, 3}, type);
    tensor const back = vv::from_dlpack(vv::to_dlpack(x));
    CHECK(back.dtype() == type);
    CHECK(back.sizes() == x.sizes());
  }
  tensor w = vv::ones({2});
  w.requires_grad_();
  CHECK_THROWS_WITH(vv::to_dlpack(w), ContainsText("x.detach()"));
  DLManagedTensor* const plain = vv::to_dlpack(tensor(w.detach()));
  plain->deleter(plain);
  CHECK_THROWS_AS(vv::vmap([](tensor const& v) {
                    vv::to_dlpack(v);
                    return v;
                  })(vv::ones({2})),
                  vv::transform_error);
}
#endif
