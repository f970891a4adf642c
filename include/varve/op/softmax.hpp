// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/abs.hpp>
#include <varve/op/amax.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/exp.hpp>
#include <varve/op/matmul.hpp>
#include <varve/op/reciprocal.hpp>
#include <varve/op/to.hpp>
#include <varve/rule/normalized_rows.hpp>

#include <limits>

namespace varve {

namespace detail {
/// Greatest elements along axes as constants, with 0 in place of infinite ones, so that exponentials of x minus these
/// cannot overflow.
template <class X, class A>
constexpr auto safe_maximum(X const& x, A const& axes) {
  auto const m = amax(detach(x), axes, keepdim);
  return where(eq(abs(m), std::numeric_limits<double>::infinity()), 0, m);
}
/// Returns `f(x)`, or `g(x)` if x has no elements, because then no maximum exists.
template <class X, class F, class G>
constexpr auto unless_empty(X const& x, F const& f, G const& g) {
  return choose(same_fact(on_dims([](dims const& s) { return dims{numel(s) == 0}; }, shape_of(x)), ints<1>{}), g, f, x);
}
} // namespace detail

/// log(sum(exp(x))) along axes without overflow (`torch.logsumexp`). The result is -inf where all elements are -inf.
/// Integers and bool are converted to the default dtype first.
inline constexpr struct logsumexp_t : composite_operator<logsumexp_t> {
  static constexpr auto op_name = "logsumexp";
  template <value X, class A, class K = ints<0>>
  static constexpr auto body(X const& x, A const& axes, K const& keep = {}) {
    auto const shifted = [&](auto const& v) {
      auto const m = detail::safe_maximum(v, axes);
      auto const s = sum(exp(sub(v, m)), axes, keep);
      return add(log(s), detail::reshape_to(m, shape_of(s)));
    };
    auto const of_floating = [&](auto const& v) {
      return detail::unless_empty(v, shifted, [&](auto const& e) { return log(sum(exp(e), axes, keep)); });
    };
    // Integers are converted first, as in PyTorch: a difference of them would wrap around.
    auto const of_integers = [&](auto const& v) {
      return of_floating(to(v, ints<static_cast<index_t>(default_dtype)>{}));
    };
    return choose(detail::is_floating_fact(x), of_floating, of_integers, x);
  }
} logsumexp{};

namespace detail {
struct softmax_rows {
  static constexpr auto op_name = "softmax";
  static bool is_built_in() { return are_built_in<exp_t, sub_t, amax_t, detach_t, mul_t, reciprocal_t, sum_t>(); }
  template <class T>
  static void run(index_t rows, index_t n, T const* x, T* y) {
    kernel::softmax_rows(rows, n, x, y);
  }
  struct backward {
    template <class T>
    static void run(index_t rows, index_t n, T const* g, T const* y, T* r) {
      kernel::softmax_backward_rows(rows, n, g, y, r);
    }
  };
  template <class T>
  static void run_columns(index_t count, index_t rows, index_t columns, T const* x, T* y) {
    kernel::softmax_columns(count, rows, columns, x, y);
  }
  template <value G, class A>
  static constexpr auto pull(G const& g, G const& y, A const& axis) {
    return mul(y, sub(g, varve::sum(mul(g, y), axis, keepdim)));
  }
};
struct log_softmax_rows {
  static constexpr auto op_name = "log_softmax";
  static bool is_built_in() { return are_built_in<exp_t, sub_t, amax_t, detach_t, mul_t, log_t, sum_t>(); }
  template <class T>
  static void run(index_t rows, index_t n, T const* x, T* y) {
    kernel::log_softmax_rows(rows, n, x, y);
  }
  struct backward {
    template <class T>
    static void run(index_t rows, index_t n, T const* g, T const* y, T* r) {
      kernel::log_softmax_backward_rows(rows, n, g, y, r);
    }
  };
  template <class T>
  static void run_columns(index_t count, index_t rows, index_t columns, T const* x, T* y) {
    kernel::log_softmax_columns(count, rows, columns, x, y);
  }
  template <value G, class A>
  static constexpr auto pull(G const& g, G const& y, A const& axis) {
    return sub(g, mul(exp(y), varve::sum(g, axis, keepdim)));
  }
};
/// Runs `softmax` or `log_softmax` of tensors along the last axis as one kernel with its own gradient.
template <class Rows>
struct whole_softmax {
  static tensor value(attributes const&, tensor const* const* x) {
    return map_rows<Rows>(x[0]->sizes()[x[0]->dim() - 1].bits, *x[0]);
  }
  static tensor pullback(int, attributes const&, tensor const& g, tensor const& y, boxed_args const&) {
    auto const body = [&] { return static_cast<tensor>(Rows::pull(g, y, ints<-1>{})); };
    auto const kernel = [&] { return map_rows<typename Rows::backward>(y.sizes()[y.dim() - 1].bits, g, y); };
    tensor const* const all[] = {&g, &y};
    return are_alike(g, y) && Rows::is_built_in() ? whole_gradient(all, 2, kernel, body) : body();
  }
  static constexpr op_table table =
      whole_table(Rows::op_name, 1, {{saved_values::result}}, &pullback, op_kind::reduction);
  /// Computes `softmax` or `log_softmax` along an axis other than the last, attribute 0.
  static tensor value_of_columns(attributes const& at, tensor const* const* x) {
    dims const& s = x[0]->sizes();
    int const axis = static_cast<int>(at[0][0].bits);
    index_t const rows = s[axis].bits, columns = numel(s.sub(axis + 1, s.n)).bits;
    tensor const in = contiguous_or_copy(*x[0]);
    tensor r = tensor::empty(s, in.dtype());
    on_floats(in.dtype(), [&]<class T>() {
      Rows::template run_columns<T>(in.numel() / (rows * columns), rows, columns, floats_of<T>(in),
                                    static_cast<T*>(r.raw()));
    });
    return r;
  }
  static tensor pullback_of_columns(int, attributes const& at, tensor const& g, tensor const& y, boxed_args const&) {
    return static_cast<tensor>(Rows::pull(g, y, at[0]));
  }
  static constexpr op_table columns =
      whole_table(Rows::op_name, 1, {{saved_values::result}}, &pullback_of_columns, op_kind::reduction);
  /// Runs the kernel if it applies; returns an undefined tensor if the composition must run instead.
  template <class A>
  static tensor call(tensor const& x, A const& axis) {
    if (!x.defined() || !Rows::is_built_in()) return {};
    tensor const* const all[] = {&x};
    dims const along = to_dims(as_fact(axis));
    if (has_rows(x, size_of_last(x, along))) return whole_call(table, no_attributes, all, 1, &value);
    return has_short_columns(x, along)
               ? whole_call(columns, attributes(dims{wrap_axis(along[0], x.dim())}), all, 1, &value_of_columns)
               : tensor();
  }
};
} // namespace detail

/// exp(x) / sum(exp(x)) along one axis. Integers are refused.
inline constexpr struct softmax_t : composite_operator<softmax_t> {
  static constexpr auto op_name = "softmax";
  static constexpr bool keeps_dtype_of_out = true;
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis) {
    detail::needs_floating<softmax_t>(x);
    if constexpr (detail::is_one_tensor<X>)
      if (X y = detail::whole_softmax<detail::softmax_rows>::call(x, axis); y.defined()) return y;
    auto const shifted = [&](auto const& v) {
      auto const e = exp(sub(v, amax(detach(v), axis, keepdim)));
      return mul(e, reciprocal(sum(e, axis, keepdim))); // one division for each sum, which is at least 1
    };
    return detail::unless_empty(x, shifted, [](auto const& v) { return exp(v); });
  }
} softmax{};

/// Logarithm of `softmax`, without overflow or loss of precision. Integers are refused.
inline constexpr struct log_softmax_t : composite_operator<log_softmax_t> {
  static constexpr auto op_name = "log_softmax";
  static constexpr bool keeps_dtype_of_out = true;
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis) {
    detail::needs_floating<log_softmax_t>(x);
    if constexpr (detail::is_one_tensor<X>)
      if (X y = detail::whole_softmax<detail::log_softmax_rows>::call(x, axis); y.defined()) return y;
    auto const shifted = [&](auto const& v) {
      auto const z = sub(v, amax(detach(v), axis, keepdim));
      return sub(z, log(sum(exp(z), axis, keepdim)));
    };
    return detail::unless_empty(x, shifted, [](auto const& v) { return exp(v); });
  }
} log_softmax{};

} // namespace varve
