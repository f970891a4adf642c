// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Rows of the families beside the umbrella: special functions, scans and sorts, writes by index, matrices, pools,
/// losses, random numbers. Included by `rows.hpp`.

namespace rows {
inline constexpr int64_t family_sides[] = {100, 1000};

inline void special_functions() {
  struct row {
    char const* name;
    tensor (*f)(tensor const&);
    double scale, offset;
  };
  static constexpr row all[] = {{"lgamma", [](tensor const& x) -> tensor { return lib::lgamma(x); }, 2, 2.5},
                                {"digamma", [](tensor const& x) -> tensor { return lib::digamma(x); }, 2, 2.5},
                                {"erfinv", [](tensor const& x) -> tensor { return lib::erfinv(x); }, 0.9, 0},
                                {"erfc", [](tensor const& x) -> tensor { return lib::erfc(x); }, 3, 0},
                                {"i0", [](tensor const& x) -> tensor { return lib::i0(x); }, 10, 0},
                                {"i0e", [](tensor const& x) -> tensor { return world::i0e(x); }, 10, 0},
                                {"i1", [](tensor const& x) -> tensor { return world::i1(x); }, 10, 0},
                                {"ndtri", [](tensor const& x) -> tensor { return world::ndtri(x); }, 0.45, 0.5},
                                {"log_ndtr", [](tensor const& x) -> tensor { return world::log_ndtr(x); }, 4, 0},
                                {"tan", [](tensor const& x) -> tensor { return lib::tan(x); }, 1.3, 0},
                                {"asin", [](tensor const& x) -> tensor { return lib::asin(x); }, 0.9, 0},
                                {"acos", [](tensor const& x) -> tensor { return lib::acos(x); }, 0.9, 0},
                                {"atan", [](tensor const& x) -> tensor { return lib::atan(x); }, 4, 0},
                                {"sinh", [](tensor const& x) -> tensor { return lib::sinh(x); }, 3, 0},
                                {"cosh", [](tensor const& x) -> tensor { return lib::cosh(x); }, 3, 0},
                                {"asinh", [](tensor const& x) -> tensor { return lib::asinh(x); }, 4, 0},
                                {"acosh", [](tensor const& x) -> tensor { return lib::acosh(x); }, 1, 2.5},
                                {"atanh", [](tensor const& x) -> tensor { return lib::atanh(x); }, 0.9, 0},
                                {"floor", [](tensor const& x) -> tensor { return lib::floor(x); }, 40, 0},
                                {"round", [](tensor const& x) -> tensor { return lib::round(x); }, 40, 0},
                                {"trunc", [](tensor const& x) -> tensor { return lib::trunc(x); }, 40, 0},
                                {"exp2", [](tensor const& x) -> tensor { return lib::exp2(x); }, 4, 0},
                                {"log2", [](tensor const& x) -> tensor { return lib::log2(x); }, 1, 2},
                                {"log10", [](tensor const& x) -> tensor { return lib::log10(x); }, 1, 2},
                                {"sinc", [](tensor const& x) -> tensor { return lib::sinc(x); }, 3, 0.1}};
  for (int64_t const n : family_sides)
    for (row const& r : all)
      forward(string(r.name) + " " + text(n, n), {world::floats({n, n}, r.scale, r.offset)},
              [f = r.f](tensor const* x) { return f(x[0]); });
  for (int64_t const n : family_sides) {
    tensor const a = world::floats({n, n}, 4, 0.1), b = world::floats({n, n}, 0.5, 2);
    string const size = " " + text(n, n);
    forward("atan2" + size, {a, b}, [](tensor const* x) { return lib::atan2(x[0], x[1]); });
    forward("fmod" + size, {a, b}, [](tensor const* x) { return lib::fmod(x[0], x[1]); });
    forward("remainder" + size, {a, b}, [](tensor const* x) { return lib::remainder(x[0], x[1]); });
    forward("hypot" + size, {a, b}, [](tensor const* x) { return lib::hypot(x[0], x[1]); });
    forward("logaddexp" + size, {a, b}, [](tensor const* x) { return lib::logaddexp(x[0], x[1]); });
    forward("copysign" + size, {a, b}, [](tensor const* x) { return lib::copysign(x[0], x[1]); });
  }
}

inline void scans_and_sorts() {
  for (int64_t const n : family_sides)
    for (int const axis : {0, 1}) {
      string const along = " axis " + std::to_string(axis) + " " + text(n, n);
      tensor const a = world::floats({n, n}, 1, 0);
      both("cumsum" + along, {a}, [=](tensor const* x) { return world::cumsum(x[0], axis); });
      forward("cumprod" + along, {a}, [=](tensor const* x) { return world::cumprod(x[0], axis); });
      forward("cummax" + along, {a}, [=](tensor const* x) { return world::cummax(x[0], axis); });
      forward("logcumsumexp" + along, {a}, [=](tensor const* x) { return world::logcumsumexp(x[0], axis); });
      forward("sort" + along, {a}, [=](tensor const* x) { return world::sorted(x[0], axis); });
      forward("topk 5" + along, {a}, [=](tensor const* x) { return world::topk(x[0], 5, axis); });
      forward("kthvalue" + along, {a}, [=](tensor const* x) { return world::kthvalue(x[0], n / 3, axis); });
      forward("median" + along, {a}, [=](tensor const* x) { return world::median(x[0], axis); });
      forward("flip" + along, {a}, [=](tensor const* x) { return lib::flip(x[0], shape{axis}); });
      tensor const rows = world::longs({n}, n);
      both("index_select" + along, {a}, [=](tensor const* x) { return lib::index_select(x[0], axis, rows); });
      both("index_add" + along, {a, a}, [=](tensor const* x) { return lib::index_add(x[0], axis, rows, x[1]); });
      tensor const at = world::longs({n, n}, n);
      forward("scatter_reduce amax" + along, {a, a},
              [=](tensor const* x) { return world::scatter_amax(x[0], axis, at, x[1]); });
    }
  for (int64_t const n : family_sides) {
    string const size = " " + text(n, n);
    tensor const a = world::floats({n, n}, 1, 0), b = world::sorted(world::floats({n}, 1, 0), 0);
    forward("searchsorted" + size, {a}, [=](tensor const* x) { return lib::searchsorted(b, x[0]); });
    forward("masked_select" + size, {a},
            [=](tensor const* x) { return lib::masked_select(x[0], lib::gt(x[0], 0.5f)); });
    forward("nonzero" + size, {a}, [=](tensor const* x) { return lib::nonzero(lib::gt(x[0], 0.5f)); });
    forward("unique" + size, {a}, [=](tensor const* x) { return world::unique(x[0]); });
    both("tril" + size, {a}, [=](tensor const* x) { return lib::tril(x[0]); });
    both("diagonal" + size, {a}, [=](tensor const* x) { return world::copy(lib::diagonal(x[0])); });
    both("prod" + size, {a}, [=](tensor const* x) { return lib::prod(x[0]); });
    both("var" + size, {a}, [=](tensor const* x) { return lib::var(x[0]); });
    both("norm" + size, {a}, [=](tensor const* x) { return world::norm(x[0]); });
  }
}

inline void matrices() {
  for (int64_t const n : {int64_t{8}, int64_t{100}}) {
    string const size = " " + text(n, n);
    tensor const a = lib::add(world::floats({n, n}, 1, 0), lib::mul(lib::eye(n), static_cast<float>(2 * n)));
    tensor const s = lib::add(lib::matmul(a, world::copy(world::transposed(a))), lib::eye(n)),
                 b = world::floats({n, 4}, 1, 0);
    forward("cholesky" + size, {s}, [](tensor const* x) { return world::cholesky(x[0]); });
    forward("solve" + size, {a, b}, [](tensor const* x) { return world::solve(x[0], x[1]); });
    forward("inverse" + size, {a}, [](tensor const* x) { return world::inverse(x[0]); });
    forward("slogdet" + size, {a}, [](tensor const* x) { return world::logdet(x[0]); });
    forward("qr" + size, {a}, [](tensor const* x) { return lib::abs(world::qr(x[0])); });
    forward("eigvalsh" + size, {s}, [](tensor const* x) { return world::eigvalsh(x[0]); });
    forward("svdvals" + size, {a}, [](tensor const* x) { return world::svdvals(x[0]); });
  }
}

inline void pools_and_losses() {
  tensor const image = world::floats({8, 16, 64, 64}, 1, 0);
  both("max_pool2d 8x16x64x64", {image}, [](tensor const* x) { return world::max_pool2d(x[0], 2); });
  both("avg_pool2d 8x16x64x64", {image}, [](tensor const* x) { return world::avg_pool2d(x[0], 2); });
  for (int64_t const n : family_sides) {
    string const size = " " + text(n, n);
    tensor const a = world::floats({n, n}, 1, 0), b = world::floats({n, n}, 0.7, 0),
                 p = world::floats({n, n}, 0.4, 0.5);
    tensor const names = world::longs({n}, n);
    both("mse_loss" + size, {a, b}, [](tensor const* x) { return lib::mse_loss(x[0], x[1]); });
    both("l1_loss" + size, {a, b}, [](tensor const* x) { return lib::l1_loss(x[0], x[1]); });
    both("smooth_l1_loss" + size, {a, b}, [](tensor const* x) { return lib::smooth_l1_loss(x[0], x[1]); });
    both("binary_cross_entropy" + size, {p}, [=](tensor const* x) { return lib::binary_cross_entropy(x[0], p); });
    both("cross_entropy" + size, {a}, [=](tensor const* x) { return world::cross_entropy(x[0], names); });
  }
}

/// Numbers differ from library to library: only their time.
inline void random_numbers() {
  auto const timed = [](string const& name, auto const& f) {
    if (wanted(name)) line(name, best([&] { tensor const r = f(); }), {});
  };
  for (int64_t const n : family_sides) {
    string const size = " " + text(n, n);
    tensor const p = world::floats({n, n}, 0.4, 0.5);
    timed("rand" + size, [=]() -> tensor { return lib::rand(shape{n, n}); });
    timed("randn" + size, [=]() -> tensor { return lib::randn(shape{n, n}); });
    timed("randint" + size, [=]() -> tensor { return lib::randint(0, 100, shape{n, n}); });
    timed("randperm" + size, [=]() -> tensor { return lib::randperm(n * n); });
    timed("bernoulli" + size, [=]() -> tensor { return lib::bernoulli(p); });
    timed("dropout" + size, [=]() -> tensor { return lib::dropout(p, 0.5, true); });
    timed("multinomial" + size, [=]() -> tensor { return lib::multinomial(p, 10, false); });
  }
}

inline void families() {
  special_functions();
  scans_and_sorts();
  matrices();
  pools_and_losses();
  random_numbers();
}
} // namespace rows
