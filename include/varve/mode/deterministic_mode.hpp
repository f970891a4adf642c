// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/mode/call_record.hpp>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace varve {

/// The error for a call of an operator without a deterministic implementation, or of one that returns two results for
/// the same operands. The message names it.
struct nondeterministic_error : error {
  using error::error;
};

/// Options of `deterministic_mode`.
struct deterministic_options {
  /// True to fill the result of `empty` with NaN, the largest integer, or true. A program that reads it before writing
  /// then always computes the same (`torch.utils.deterministic.fill_uninitialized_memory`).
  bool fill_uninitialized_memory = true;
  /// True to collect messages in `warnings` instead of throwing (`warn_only`).
  bool warn_only = false;
  /// True to compute every operator twice and compare the results bit by bit. This finds nondeterministic kernels that
  /// were not named.
  bool run_twice = false;
};

/// A program under this mode computes the same bits on every run, or throws (`torch.use_deterministic_algorithms`).
/// varve's own operators are deterministic. Random ones are determined by `manual_seed` and, as in PyTorch, not
/// refused. Library kernels that are not deterministic must be named:
///
///   deterministic_mode mode;
///   mode.alert_not_deterministic("mylib::atomic_sum");
///   mode_guard const on{mode};
///   ops::call("mylib::atomic_sum", x);     // varve: mylib::atomic_sum has no deterministic implementation
///
/// Static values are not affected: their operators are constant expressions.
class deterministic_mode : public dispatch_mode<deterministic_mode> {
public:
  static constexpr bool supports_higher_order_operators = true;
  explicit deterministic_mode(deterministic_options o = {}) : options_(o) {}
  /// Refuses calls of the operator from now on.
  deterministic_mode& alert_not_deterministic(std::string op) {
    lock_([&] { refused_.push_back(std::move(op)); });
    return *this;
  }
  std::vector<std::string> warnings;

  boxed_args process(boxed_hop const& op, boxed_args const& x) { return op(x); }
  tensor process(boxed_op const& op, boxed_args const& x) {
    bool refused = false;
    lock_([&] {
      for (auto const& n : refused_) refused = refused || n == op.name();
    });
    if (refused) complain(std::string("varve: ") + op.name() + " has no deterministic implementation");
    tensor y = op(x);
    op_kind const kind = kind_of_call(op);
    if (options_.fill_uninitialized_memory && op.table->handle && op.table->handle()->own &&
        detail::same_text(op.name(), "empty"))
      fill(y);
    else if (options_.run_twice && kind != op_kind::random && kind != op_kind::mutation && kind != op_kind::effect &&
             !std::strchr(op.schema(), '!')) {
      tensor const again = op(x);
      if (detail::row_major_bytes(detail::innermost_tensor(again)) !=
          detail::row_major_bytes(detail::innermost_tensor(y)))
        complain(std::string("varve: ") + op.name() + " gave two results for the same operands");
    }
    return y;
  }
  template <class Op, class... X>
    requires(!std::is_same_v<Op, boxed_op> && !std::is_same_v<Op, boxed_hop>)
  constexpr auto process(Op const& op, X const&... x) {
    return op(x...);
  }

private:
  VARVE_COLD void complain(std::string const& text) {
    if (!options_.warn_only) refuse::with<nondeterministic_error>(text.c_str());
    lock_([&] { warnings.push_back(text); });
  }
  static void fill(tensor const& y) {
    if (!y.defined() || y.is_wrapped() || !y.has_data()) return;
    if (is_compact(y.dtype())) { // NaN for floating dtypes
      std::memset(y.raw(), 0xFF, static_cast<std::size_t>(y.numel() * itemsize(y.dtype())));
      return;
    }
    on_dtype(y.dtype(), "empty", [&]<class T>() {
      using limits = std::numeric_limits<T>;
      T const v = limits::has_quiet_NaN ? limits::quiet_NaN() : (limits::max)();
      for (index_t k = 0; k < y.numel(); ++k) static_cast<T*>(y.raw())[k] = v;
    });
  }
  deterministic_options options_;
  std::vector<std::string> refused_;
  detail::spin_lock lock_; // `parallel_for` and `carry` share one mode between threads
};

} // namespace varve

#pragma GCC diagnostic pop
