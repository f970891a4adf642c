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

/// An operator without a deterministic implementation was called, or one gave two results for the same operands; the
/// text names it.
struct nondeterministic_error : error {
  using error::error;
};

/// What `deterministic_mode` does beside refusing operators.
struct deterministic_options {
  /// `empty` gives NaN, the greatest integer, or true, so that a program that reads it before writing gives the same
  /// always (`torch.utils.deterministic.fill_uninitialized_memory`).
  bool fill_uninitialized_memory = true;
  /// Complaints are kept in `warnings` instead of thrown (`warn_only`).
  bool warn_only = false;
  /// Computes every operator twice and compares bit by bit: finds kernels that are not deterministic without being told
  /// so.
  bool run_twice = false;
};

/// A program under it gives the same bits on every run, or throws (`torch.use_deterministic_algorithms`). varve's own
/// operators are deterministic: random ones are a function of `manual_seed`, as in PyTorch they are not refused.
/// Kernels of a library that are not must be named:
///
///   deterministic_mode mode;
///   mode.alert_not_deterministic("mylib::atomic_sum");
///   mode_guard const on{mode};
///   ops::call("mylib::atomic_sum", x);     // varve: mylib::atomic_sum has no deterministic implementation
///
/// Static values pass: their operators are constant expressions.
class deterministic_mode : public dispatch_mode<deterministic_mode> {
public:
  static constexpr bool supports_higher_order_operators = true;
  explicit deterministic_mode(deterministic_options o = {}) : options_(o) {}
  /// Calls of the operator are refused from now on.
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
    if (is_compact(y.dtype())) { // of floats NaN
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
  detail::spin_lock lock_; // `parallel_for` and `carry` take one mode to several threads
};

} // namespace varve

#pragma GCC diagnostic pop
