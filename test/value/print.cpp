// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("print: tensors as PyTorch shows them", "[value][print]") {
  CHECK(to_string(from({1, 2.5}, {2})) == "tensor([1, 2.5], dtype=float64)");
  CHECK(to_string(from({1, 0}, {2}, dtype::bool_)) == "tensor([true, false])");
  CHECK(to_string(from({1, 2, 3, 4}, {2, 2}, dtype::int64)) == "tensor([[1, 2],\n        [3, 4]])");
  CHECK(to_string(vv::permute(from({1, 2, 3, 4}, {2, 2}, dtype::int64), dims{1, 0})) ==
        "tensor([[1, 3],\n        [2, 4]])");
  CHECK(to_string(from({3}, {}, dtype::float32)) == "tensor(3)");
  CHECK(to_string(vv::zeros({0})) == "tensor([])");
  CHECK(to_string(tensor::meta({2}, dtype::float32)) == "tensor(..., device=meta, size=[2])");
  CHECK(to_string(tensor()) == "tensor(undefined)");
  std::string const long_one = to_string(vv::arange(2000));
  CHECK(long_one == "tensor([0, 1, 2, ..., 1997, 1998, 1999])");
  CHECK(to_string(from({INFINITY, -INFINITY, NAN}, {3})).find("inf, -inf, nan") != std::string::npos);
  CHECK(to_string(from({std::copysign(NAN, -1.0)}, {1})) == "tensor([nan], dtype=float64)");
}

TEST_CASE("print: the innermost transform stands outside", "[value][print][FS-S17]") {
  tensor const x = from({1, 2}, {2});
  std::string text;
  (void)vv::vmap(vv::grad([&](tensor const& v) {
    text = to_string(v);
    return v * v;
  }))(x);
  CHECK(text == "grad(level=2, value=vmap(level=1, dim=0, value=tensor([1, 2], dtype=float64)))");
  (void)vv::vmap(vv::vmap([&](tensor const& v) {
    text = to_string(v);
    return v;
  }))(from({5}, {1, 1}));
  CHECK(text == "vmap(level=2, dim=0, value=vmap(level=1, dim=0, value=tensor([[5]], dtype=float64)))");
  (void)vv::grad(vv::grad([&](tensor const& v) {
    text = to_string(v);
    return v * v * v;
  }))(from({5}, {}));
  CHECK(text == "grad(level=2, value=grad(level=1, value=tensor(5, dtype=float64)))");
  (void)vv::jvp([&](tensor const& v) { return text = to_string(v), v; }, std::tuple(x), std::tuple(x));
  CHECK(text.find("jvp(level=1, value=tensor([1, 2], dtype=float64), tangent=") == 0);
}
