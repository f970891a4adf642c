// SPDX-License-Identifier: BSL-1.0
#include "sample.hpp"

#include <varve_test.hpp>

namespace sample { // its operators hide varve's of the same names

namespace {
template <class Body>
struct program {
  constexpr graph operator()() const { return Body::make(); }
};

struct views { // slices, permutes, expands and joins of computed values
  static constexpr graph make() {
    writer w;
    int const x = w.argument(dims(5, 19)), y = w.argument(dims(19));
    int const t = w.apply(tanh_, w.apply(mul, x, y));
    int const a = w.sliced(t, 1, 2, 17, 3), b = w.permuted(t, dims(1, 0)),
              c = w.shaped(expand, w.shaped(reshape, y, dims(19, 1)), dims(19, 5));
    int const d = w.apply(add, b, c), e = w.joined({w.sliced(x, 0, 1, 3), x, w.sliced(t, 0, 0, 1)}, 0),
              f = w.shaped(reshape, d, dims(5, 19));
    return w.done({a, d, e, w.apply(sub, f, x), w.shaped(reshape, t, dims(95)), x, x});
  }
};
struct stencil { // gradient of a sum over neighbours: split into boxes
  static constexpr graph make() {
    writer w(dtype::float64);
    int const x = w.argument(dims(41));
    int const l = w.sliced(x, 0, 0, 39), m = w.sliced(x, 0, 1, 40), r = w.sliced(x, 0, 2, 41);
    int const s = w.apply(add, w.apply(mul, l, r), m);
    int const g0 = w.unsliced(w.apply(mul, s, r), dims(41), 0, 0, 39), g1 = w.unsliced(s, dims(41), 0, 1, 40),
              g2 = w.unsliced(w.apply(mul, s, l), dims(41), 0, 2, 41);
    int const g = w.apply(add, w.apply(add, g0, g1), g2);
    return w.done({g, w.reduce(sum, w.apply(mul, g, x), dims(0)), w.sliced(g, 0, 0, 41, 2)});
  }
};
struct stencil_2d {
  static constexpr graph make() {
    writer w;
    int const x = w.argument(dims(7, 21));
    int const d = w.apply(sub, w.sliced(x, 0, 1, 7), w.sliced(x, 0, 0, 6)),
              e = w.apply(sub, w.sliced(x, 1, 1, 21), w.sliced(x, 1, 0, 20));
    int const g = w.apply(sub, w.unsliced(d, dims(7, 21), 0, 1, 7), w.unsliced(d, dims(7, 21), 0, 0, 6));
    int const h = w.apply(sub, w.unsliced(e, dims(7, 21), 1, 1, 21), w.unsliced(e, dims(7, 21), 1, 0, 20));
    int const k = w.apply(add, g, h);
    return w.done({k, w.reduce(sum, k, dims(0)), w.reduce(sum, k, dims(1), true), w.reduce(amax, k, dims(0, 1))});
  }
};
struct strided_slice_gradient {
  static constexpr graph make() {
    writer w;
    int const x = w.argument(dims(3, 10));
    int const t = w.apply(tanh_, w.sliced(x, 1, 1, 10, 3));
    return w.done({w.apply(add, w.unsliced(t, dims(3, 10), 1, 1, 10, 3), x)});
  }
};
struct reductions {
  static constexpr graph make() {
    writer w;
    int const x = w.argument(dims(6, 20, 9)), y = w.argument(dims(9));
    int const p = w.apply(mul, x, y);
    int const a = w.reduce(sum, p, dims(0, 1, 2)), b = w.reduce(sum, p, dims(0)), c = w.reduce(sum, p, dims(2)),
              d = w.reduce(sum, p, dims(0, 2), true);
    int const e = w.reduce(amax, p, dims(1)), f = w.reduce(sum, p, dims(0, 1)),
              g = w.apply(sub, p, w.reduce(amax, p, dims(2), true));
    return w.done({a, b, c, d, e, f, w.reduce(sum, w.apply(tanh_, g), dims(2)), w.reduce(argmax, x, dims(1))});
  }
};
struct softmax { // values that several loops need
  static constexpr graph make() {
    writer w;
    int const x = w.argument(dims(11, 37));
    int const m = w.reduce(amax, x, dims(1), true), e = w.apply(tanh_, w.apply(sub, x, m)),
              s = w.reduce(sum, w.apply(mul, e, e), dims(1), true), y = w.apply(div_, e, w.apply(add, s, w.number(1)));
    int const t = w.reduce(sum, y, dims(0, 1));
    return w.done({y, w.apply(mul, y, t), w.apply(tanh_, t)});
  }
};
template <dtype T>
struct products {
  static constexpr graph make() {
    writer w(T);
    int const a = w.argument(dims(13, 21)), b = w.argument(dims(21, 10)), c = w.argument(dims(13, 10)),
              v = w.argument(dims(21, 1)), u = w.argument(dims(1, 13)), s = w.argument(dims(3, 4, 5)),
              r = w.argument(dims(3, 6, 5));
    int const ab = w.product(a, b), tc = w.product(a, c, true, false), cb = w.product(c, b, false, true),
              tt = w.product(b, a, true, true);
    int const av = w.product(a, v), ua = w.product(u, a), g = w.product(a, w.apply(tanh_, av), true, false),
              bv = w.product(b, v, true, false), outer = w.product(v, u);
    int const batch = w.product(s, r, false, true), p = w.product(w.apply(tanh_, ab), w.permuted(b, dims(1, 0)));
    return w.done({ab, tc, cb, tt, av, ua, g, bv, outer, batch, p, w.apply(tanh_, w.apply(add, ab, c))});
  }
};
struct records { // short inner axes: unrolled, loaded as transposed squares
  static constexpr graph make() {
    writer w;
    int const x = w.argument(dims(45, 10)), v = w.argument(dims(10, 1)), y = w.argument(dims(45, 3));
    int const z = w.apply(tanh_, w.product(x, v)), n = w.reduce(sum, w.apply(mul, y, y), dims(1), true),
              q = w.apply(mul, z, n);
    return w.done({w.product(x, q, true, false), w.reduce(sum, w.apply(mul, q, y), dims(0)),
                   w.reduce(sum, w.apply(mul, x, z), dims(0)), w.apply(mul, y, n)});
  }
};
struct conversions {
  static constexpr graph make() {
    writer w;
    int const x = w.argument(dims(3, 11)), d = w.argument(dims(11), dtype::float64),
              i = w.argument(dims(3, 1), dtype::int64), b = w.argument(dims(11), dtype::bool_);
    int const xd = w.convert(x, dtype::float64), p = w.apply(mul, xd, d), back = w.convert(p, dtype::float32),
              gtx = w.apply(gt, x, w.number(0.1)), sel = w.choose(gtx, x, back), k = w.convert(b, dtype::float32);
    int const r = w.push(arange, {dtype::int64, dims(11)}, {},
                         attributes(dims(11), dims(static_cast<int>(dtype::int64)))),
              o = w.push(one_hot, {dtype::int64, dims(3, 1, 3)}, {i}, attributes(dims(3)));
    return w.done({back, sel, gtx, w.apply(mul, k, x), w.apply(add, i, r),
                   w.apply(mul, w.convert(r, dtype::float32), x), o,
                   w.reduce(sum, w.convert(gtx, dtype::int64), dims(1))});
  }
};
struct indexing {
  static constexpr graph make() {
    writer w;
    int const x = w.argument(dims(3, 8)), i = w.argument(dims(2, 8), dtype::int64);
    int const t = w.apply(tanh_, x), q = w.push(gather, {dtype::float32, dims(2, 8)}, {t, i}, attributes(dims(0)));
    return w.done(
        {q, w.push(scatter_add, {dtype::float32, dims(3, 8)}, {x, i, w.apply(mul, q, q)}, attributes(dims(0)))});
  }
};
struct constants { // array constants of every use: loaded, viewed, reduced, multiplied, as operands of calls and as
                   // results
  static constexpr graph make() {
    writer w;
    int const x = w.argument(dims(7, 19)), y = w.argument(dims(19, 1)), t = w.table(dims(7, 19)), u = w.table(dims(19)),
              i = w.table(dims(7, 1), dtype::int64), v = w.table(dims(7, 1));
    int const a = w.apply(mul, x, t), b = w.apply(add, x, u), c = w.apply(add, w.permuted(t, dims(1, 0)), y),
              d = w.product(t, y), e = w.product(x, w.permuted(t, dims(1, 0)));
    int const q = w.push(gather, {dtype::float32, dims(7, 1)}, {x, i}, attributes(dims(1))),
              s = w.reduce(sum, w.apply(mul, x, v), dims(0)),
              o = w.apply(mul, w.shaped(reshape, t, dims(133)), w.shaped(reshape, x, dims(133)));
    int const f = w.joined({u, w.reduce(sum, x, dims(0))}, 0), k = w.sliced(w.table(dims(200)), 0, 3, 190, 11),
              both = w.apply(add, w.apply(mul, u, u), w.apply(sub, u, w.number(0.5)));
    int const far = w.choose(w.apply(gt, u, w.number(0)), w.apply(neg, u), b);
    return w.done(
        {a, b, c, d, e, q, s, o, f, k, both, far, u, w.convert(v, dtype::float64), w.shaped(expand, v, dims(7, 19))});
  }
};
struct scalars {
  static constexpr graph make() {
    writer w(dtype::float64);
    int const x = w.argument(dims()), y = w.argument(dims()), z = w.argument(dims(3));
    int const t = w.apply(tanh_, w.apply(mul, x, y)), s = w.reduce(sum, w.apply(mul, z, z), dims(0)),
              u = w.apply(div_, t, w.apply(add, s, w.number(2)));
    return w.done({u, w.apply(mul, z, u), t, w.number(4), w.apply(mul, w.sliced(z, 0, 1, 3), w.sliced(z, 0, 0, 2))});
  }
};
} // namespace

#define AGREES(name) CHECK(difference<program<name>>() < 2e-5)
TEST_CASE("programs: a fused graph computes what its nodes say", "[graph][fuse]") {
  AGREES(views);
  AGREES(stencil);
  AGREES(stencil_2d);
  AGREES(strided_slice_gradient);
  AGREES(reductions);
  AGREES(softmax);
  AGREES(products<dtype::float32>);
  AGREES(products<dtype::float64>);
  AGREES(records);
  AGREES(conversions);
  AGREES(indexing);
  AGREES(scalars);
  AGREES(constants);
}

} // namespace sample
