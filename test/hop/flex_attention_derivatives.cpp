// SPDX-License-Identifier: BSL-1.0
// Attention under transforms.
#include "flex_attention_test.hpp"

#include <varve_test.hpp>

using namespace flex_attention_test;

TEST_CASE("flex_attention: jvp, vjp, vmap and second derivatives", "[hop][flex_attention]") {
  tensors const t;
  auto const along = [&](auto x, auto y, auto z, auto b) { return loss(x, y, z, b, t.g, t.g_lse); };
  tensor const dq = vv::sin(t.q), dk = vv::cos(t.k), dv = vv::sin(t.v), db = vv::cos(t.bias);
  double const slope = vv::sum(dq * boxed(right.dq)).item<double>() + vv::sum(dk * boxed(right.dk)).item<double>() +
                       vv::sum(dv * boxed(right.dv)).item<double>() + vv::sum(db * boxed(right.dt)).item<double>();
  auto const ran = vv::jvp(along, std::tuple(t.q, t.k, t.v, t.bias), std::tuple(dq, dk, dv, db));
  CHECK(ran.second.item<double>() == Approx(slope));
  CHECK(vv::jvp([](auto x, auto y, auto z, auto b) { return loss(x, y, z, b, g, g_lse); }, std::tuple(q, k, v, bias),
                std::tuple(unboxed(dq, q), unboxed(dk, k), unboxed(dv, v), unboxed(db, bias)))
            .second == Approx(slope));
  auto const [out, pull] =
      vv::vjp([&](auto x, auto y, auto z, auto b) { return attend(x, y, z, b).first; }, t.q, t.k, t.v, t.bias);
  CHECK(agree(std::get<2>(pull(t.g)), boxed(right.dv)));

  // second order: forward over reverse, reverse over forward and reverse over reverse agree, and are a difference
  auto const one = [&](auto x) { return loss(x, t.k, t.v, t.bias, t.g, t.g_lse); };
  tensor const forward = vv::jvp(vv::grad(one), std::tuple(t.q), std::tuple(dq)).second;
  tensor const reverse = vv::grad([&](auto x) { return vv::jvp(one, std::tuple(x), std::tuple(dq)).second; })(t.q);
  tensor const twice = vv::grad([&](auto x) { return vv::sum(vv::grad(one)(x) * dq); })(t.q);
  tensor const difference = (vv::grad(one)(t.q + 1e-5 * dq) - vv::grad(one)(t.q - 1e-5 * dq)) / 2e-5;
  CHECK(agree(forward, reverse));
  CHECK(agree(forward, twice));
  CHECK(greatest(forward - difference) < 1e-8);
  CHECK(greatest(forward) > 1e-2);

  // lanes: of batches, and of tables
  auto const mapped =
      vv::vmap([](auto x, auto y, auto z, auto b) { return attend(x, y, z, b); }, vv::in_dims<0, 0, 0, vv::none>);
  auto const batch_of_one = [](tensor const& x) { return vv::unsqueeze(x, 1); };
  auto const [ys, ss] = mapped(batch_of_one(t.q), batch_of_one(t.k), batch_of_one(t.v), t.bias);
  CHECK(agree(vv::squeeze(ys, 1), boxed(right.out)));
  CHECK(agree(vv::squeeze(ss, 1), boxed(right.lse)));
  tensor const tables = vv::stack(std::vector{t.bias, t.bias * 2.0}, 0);
  tensor const each = vv::vmap(vv::grad<3>(loss), vv::in_dims<vv::none, vv::none, vv::none, 0, vv::none, vv::none>)(
      t.q, t.k, t.v, tables, t.g, t.g_lse);
  CHECK(agree(at(each, 0), boxed(right.dt)));
  CHECK(agree(at(each, 1), vv::grad<3>(loss)(t.q, t.k, t.v, t.bias * 2.0, t.g, t.g_lse)));
}
