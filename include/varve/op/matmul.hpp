// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/kernel/matmul.hpp>
#include <varve/op/expand.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/reshape.hpp>
#include <varve/op/sum.hpp>
#include <varve/op/to.hpp>

namespace varve {

/// Matrix product of operands of equal rank >= 2 and equal leading sizes. Attribute {ta, tb}: a is stored as [.., k, m]
/// if ta, and b as [.., n, k] if tb.
template <>
struct rules<mm_t> : rule::bilinear {
  static constexpr operator_class planned_as = operator_class::mm;
  static constexpr complex_rule of_complex = complex_rule::mm;
  static constexpr saved_values saved{{saved_values::operand(1), saved_values::operand(0)}};
  static constexpr op_kind kind = op_kind::contraction;
  static constexpr auto schema = "(Tensor self, Tensor mat2, bool[2] transposed=False) -> Tensor";
  static constexpr int least_attributes = 0;
  static constexpr attributes checked(attributes const& at, meta const*) {
    if (at.count == 0) return attributes(dims{0, 0});
    if (at[0].n != 2) refuse::argument_is_invalid("mm", "there are two flags: is each operand stored transposed?");
    return attributes(dims{at[0][0] != 0, at[0][1] != 0});
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    dims const &a = in[0].sizes, &b = in[1].sizes;
    bool const ta = at[0][0].bits != 0, tb = at[0][1].bits != 0;
    if (a.n < 2 || a.n != b.n || !(a.sub(0, a.n - 2) == b.sub(0, b.n - 2)) ||
        a[a.n - (ta ? 2 : 1)] != b[b.n - (tb ? 1 : 2)])
      refuse::shapes_do_not_match("matmul", a, b);
    if (in[0].type != in[1].type) refuse::dtypes_differ("matmul", name(in[0].type), name(in[1].type));
    dims s = a.sub(0, a.n - 2);
    s.push_back(a[a.n - (ta ? 1 : 2)]).push_back(b[b.n - (tb ? 2 : 1)]);
    return {in[0].type, s};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> a, strided<T const> b) {
    int const r = out.sizes.n;
    index_t const m = out.sizes[r - 2], n = out.sizes[r - 1], k = a.sizes[r - (at[0][0] ? 2 : 1)];
    index_t const am = a.strides[r - (at[0][0] ? 1 : 2)], ak = a.strides[r - (at[0][0] ? 2 : 1)];
    index_t const bk = b.strides[r - (at[0][1] ? 1 : 2)], bn = b.strides[r - (at[0][1] ? 2 : 1)];
    index_t const cm = out.strides[r - 2], cn = out.strides[r - 1];
    for_each_index(out.sizes.sub(0, r - 2), [&](dims const& i) {
      index_t oa = 0, ob = 0, oc = 0;
      for (int d = 0; d < i.n; ++d) {
        index_t const at_d = i[d].bits;
        oa += at_d * a.strides[d].bits, ob += at_d * b.strides[d].bits, oc += at_d * out.strides[d].bits;
      }
      for (index_t x = 0; x < m; ++x)
        for (index_t y = 0; y < n; ++y) {
          R acc{};
          for (index_t z = 0; z < k; ++z) {
            T const &p = a.data[oa + x * am + z * ak], &q = b.data[ob + z * bk + y * bn];
            if constexpr (kernel::integral<T>) acc = kernel::add<R>(acc, kernel::mul<R>(p, q));
            else acc = static_cast<R>(acc + p * q);
          }
          out.data[oc + x * cm + y * cn] = acc;
        }
    });
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& a, T const& b) {
    meta const in[] = {meta_of(a), meta_of(b)};
    meta const m = shape(at, in, 2);
    T c = tensor::empty(m.sizes, m.type);
    int const r = m.sizes.n;
    auto matrix = [r](T const& t, bool transposed, index_t offset) {
      char* const p = static_cast<char*>(t.raw()) + offset * itemsize(t.dtype());
      index_t const* const step = t.strides().numbers();
      return kernel::matrix<void>{p, step[r - (transposed ? 1 : 2)], step[r - (transposed ? 2 : 1)]};
    };
    index_t const* const size = m.sizes.numbers();
    bool const ta = at[0][0].bits != 0, batched = r > 2; // the innermost leading dimension in one call
    index_t const apart[] = {batched ? a.strides().numbers()[r - 3] : 0, batched ? b.strides().numbers()[r - 3] : 0,
                             batched ? c.strides().numbers()[r - 3] : 0};
    for_each_index(m.sizes.sub(0, batched ? r - 3 : 0), [&](dims const& i) {
      index_t oa = 0, ob = 0, oc = 0;
      for (int d = 0; d < i.n; ++d)
        oa += i[d].bits * a.strides()[d].bits, ob += i[d].bits * b.strides()[d].bits,
            oc += i[d].bits * c.strides()[d].bits;
      auto const x = matrix(a, ta, oa);
      auto const y = matrix(b, at[0][1].bits != 0, ob);
      kernel::matmul<>(m.type, batched ? size[r - 3] : 1, apart, size[r - 2], size[r - 1],
                       a.sizes().numbers()[r - (ta ? 2 : 1)], {x.data, x.row, x.col}, {y.data, y.row, y.col},
                       matrix(c, false, oc));
    });
    return c;
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const&,
                            value auto const& b) {
    auto const& f = op.a;
    return flagged(
        on_dims([](dims const& d) { return dims{d[0]}; }, f),
        [&](auto const& u, auto const& v) { return mm(v, u, on_dims([](dims const& d) { return dims{d[1], 1}; }, f)); },
        [&](auto const& u, auto const& v) {
          return mm(u, v, on_dims([](dims const& d) { return dims{0, !d[1]}; }, f));
        },
        g, b);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const& op, value auto const& g, value auto const&, value auto const& a,
                            value auto const&) {
    auto const& f = op.a;
    return flagged(
        on_dims([](dims const& d) { return dims{d[1]}; }, f),
        [&](auto const& u, auto const& v) { return mm(u, v, on_dims([](dims const& d) { return dims{1, d[0]}; }, f)); },
        [&](auto const& u, auto const& v) {
          return mm(v, u, on_dims([](dims const& d) { return dims{!d[0], 0}; }, f));
        },
        g, a);
  }
  /// Maps over one operand by a single matrix product where possible: mapped vectors or matrices times one matrix for
  /// all, or one matrix times mapped vectors. The gradient of the shared matrix is a single product, too. A matrix for
  /// each lane would be many times larger.
  template <class Op, class N, class A, class B>
  static constexpr auto batch(Op const& op, N const& n, A const& a, B const& b) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(a.value)>, tensor> &&
                  std::is_same_v<std::remove_cvref_t<decltype(b.value)>, tensor>) {
      dims const flags = to_dims(op.a);
      bool const ta = flags[0] != 0, tb = flags[1] != 0;
      if (a.batched != b.batched && a.value.dim() + b.value.dim() == 5) {
        dims const& s = a.batched ? a.value.sizes() : b.value.sizes();
        if (a.batched && (!ta || known_equal(s[2], 1))) return product_of_rows(a.value, ta ? s[2] : s[1], b.value, tb);
        if (b.batched && known_equal(s[tb ? 1 : 2], 1)) {
          auto const y = product_of_rows(b.value, s[tb ? 1 : 2], a.value, !ta);
          return reshape(y, dims{s[0], y.sizes()[2], 1});
        }
      }
    }
    return op(materialize(a, n), materialize(b, n));
  }

private:
  /// Multiplies n times m rows by one matrix, to [n, m, columns].
  template <class T>
  static T product_of_rows(T const& x, extent m, T const& matrix, bool transposed) {
    extent const n = x.sizes()[0], k = matrix.sizes()[transposed ? 1 : 0];
    T const y = mm(reshape(x, dims{n * m, k}), matrix, dims{0, transposed});
    return reshape(y, dims{n, m, y.sizes()[1]});
  }
  template <class Flag, class F, class G, class... V>
  static constexpr auto flagged(Flag const& flag, F const& f, G const& g, V const&... v) {
    if constexpr (is_ints<Flag>) return choose(std::bool_constant<(Flag::to_dims()[0] != 0)>{}, f, g, v...);
    else return choose(flag[0] != 0, f, g, v...);
  }
};

template <value A, value B, class... F>
constexpr auto mm_t::operator()(A const& a, B const& b, F const&... flags) const {
  if constexpr (sizeof...(F) == 0) return bind<mm_t>(ints<0, 0>{})(a, b);
  else return bind<mm_t>(flags...)(a, b);
}

namespace detail {
inline constexpr auto matrix_shape_left = [](dims const& a) { return a.n == 1 ? dims{1, a[0]} : a; };
inline constexpr auto matrix_shape_right = [](dims const& b) { return b.n == 1 ? dims{b[0], 1} : b; };
inline constexpr auto batch_shape = [](dims const& mine, dims const& a, dims const& b) {
  dims s = broadcast(a.sub(0, a.n - 2), b.sub(0, b.n - 2));
  return s.push_back(mine[mine.n - 2]).push_back(mine[mine.n - 1]);
};
inline constexpr auto product_shape = [](dims const& c, dims const& a, dims const& b) {
  dims s = c;
  if (b.n == 1) s.erase(s.n - 1);
  if (a.n == 1) s.erase(s.n - (b.n == 1 ? 1 : 2));
  return s;
};
inline constexpr auto check_matmul = [](dims const& a, dims const& b) {
  if (a.n == 0 || b.n == 0 || a[a.n - 1] != b[b.n == 1 ? 0 : b.n - 2]) refuse::shapes_do_not_match("matmul", a, b);
  return dims{1};
};
} // namespace detail

/// Matrix product by PyTorch's rules: 1-D operands are vectors, and leading dimensions broadcast. Decomposes into
/// reshapes and `mm`.
inline constexpr struct matmul_t : composite_operator<matmul_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "matmul";
  static constexpr bool keeps_dtype_of_out = true;
  template <value A, value B>
  static constexpr auto body(A const& a, B const& b) {
    auto const sa = shape_of(a);
    auto const sb = shape_of(b);
    auto const fits = on_dims(detail::check_matmul, sa, sb);
    if constexpr (std::is_same_v<decltype(fits), ints<> const>) {
      return a; // refused: instantiate nothing more
    } else {
      auto const ma = detail::reshape_to(a, on_dims(detail::matrix_shape_left, sa));
      auto const mb = detail::reshape_to(b, on_dims(detail::matrix_shape_right, sb));
      auto const ba = on_dims(detail::batch_shape, shape_of(ma), shape_of(ma), shape_of(mb));
      auto const bb = on_dims(detail::batch_shape, shape_of(mb), shape_of(ma), shape_of(mb));
      auto const c = mm(broadcast_to(ma, ba), broadcast_to(mb, bb));
      return detail::reshape_to(c, on_dims(detail::product_shape, shape_of(c), sa, sb));
    }
  }
} matmul{};

/// Dot product of two vectors of equal length.
inline constexpr struct dot_t : composite_operator<dot_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "dot";
  template <value A, value B>
  static constexpr auto body(A const& a, B const& b) {
    auto check = [](dims const& x, dims const& y) {
      if (x.n != 1 || !(x == y)) refuse::shapes_do_not_match("dot", x, y);
      return dims{};
    };
    (void)on_dims(check, shape_of(a), shape_of(b));
    auto const products = mul(a, b);
    auto const own = [&](auto const& y) { return to(y, type_fact(products)); }; // sums of small integers are int64
    auto const is_integer = [](dims const& t) { return dims{category(static_cast<dtype>(index_t(t[0]))) == 1}; };
    return choose(same_fact(on_dims(is_integer, type_fact(products)), ints<1>{}), own, detail::identity, sum(products));
  }
} dot{};

} // namespace varve
