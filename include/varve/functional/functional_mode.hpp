// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/functional/functional_function.hpp>
#include <varve/functional/functional_tensor.hpp>
#include <varve/transform/recorded_hop.hpp>

#include <optional>

namespace varve {

namespace detail {
/// The source of functional tensors for captured tensors, while a function is traced under a functional mode.
struct functional_captures {
  virtual tensor stand_in(tensor const& captured) = 0;

protected:
  ~functional_captures() = default;
};
template <class T>
struct ahead_of_time;
} // namespace detail

/// The mode under which no operator writes (`FunctionalTensorMode`). It applies the rules of `functionalize` below
/// transforms, autograd and all user modes, and above the tracer and fake tensors. Modes below see only functional
/// operators; user modes see the program as it is written.
///
///     functional_mode mode;
///     functional_mode_guard const on(mode);
///     tensor t = mode.to_functional_tensor(x);
///     add_(select(t, 0, 0), 1.0);           // below: select, add, select_scatter
///     tensor y = from_functional_tensor(t); // x is unchanged
///
/// Results of operators under it are functional tensors. In-place operators on plain tensors write as usual; with a
/// functional operand they are refused (`transform_error`). Higher-order operators are called with functions that do
/// not write; custom functions stay calls. Other errors are those of `functionalize`. Only one thread at a time may use
/// a mode.
class functional_mode : detail::functional_core<tensor, functional_mode> {
  using core = detail::functional_core<tensor, functional_mode>;
  friend core;
  template <class Host>
  friend struct detail::functional_fn;
  template <class Host>
  friend boxed_args detail::functional_hop(Host const&, boxed_hop const&, boxed_args const&);
  template <class Host>
  friend boxed_args detail::functional_custom_call(Host const&, detail::custom_function_ptr const&, boxed_args const&);
  template <class T>
  friend struct detail::ahead_of_time;

public:
  static constexpr bool supports_higher_order_operators = true, takes_programs = true;

  functional_mode() {
    run_->is_mode = true;
    detail::record_hops();
  }
  functional_mode(functional_mode const&) = delete;
  functional_mode& operator=(functional_mode const&) = delete;

  /// Returns a functional tensor with the value of a tensor and memory of its own: writes do not reach the original. If
  /// two tensors that share memory are made functional, neither may be written (`transform_error`); make one functional
  /// and take views of it instead. The result requires a gradient if the tensor does, and is a leaf if the tensor is
  /// one. Throws `value_error` for functional tensors.
  template <class T = tensor>
  T to_functional_tensor(T const& t) const {
    if (is_functional_tensor(t))
      refuse::with<value_error>(
          "varve: functional_mode: to_functional_tensor: the tensor is a functional one already; take its "
          "value by from_functional_tensor first");
    if (t.is_wrapped())
      refuse::with<transform_error>(
          "varve: functional_mode: to_functional_tensor: the tensor is seen through a transform, which "
          "is above the mode; make it functional outside, and pass it as an argument");
    bool const shared = shares_memory(t);
    T const plain = t.has_history() ? T(t.alias()) : t;
    T const r = wrap(plain);
    given_.push_back({t, alias_of(r).memory});
    if (shared) alias_of(r).memory->shared = true;
    mirror_autograd_meta(t, r);
    return r;
  }
  /// True for a functional tensor of this mode.
  bool owns(tensor const& t) const { return is_functional_tensor(t) && alias_of(t).memory->run == run_; }

  tensor process(boxed_op const& op, boxed_args const& x) const {
    if (captures_) [[unlikely]] {
      boxed_args const in = with_captures(x);
      return op.table->kind == op_kind::mutation ? write(op, in) : call(op, in);
    }
    return op.table->kind == op_kind::mutation ? write(op, x) : call(op, x);
  }
  boxed_args process(boxed_hop const& call, boxed_args const& x) const {
    return detail::functional_hop(*this, call, captures_ ? with_captures(x) : x);
  }

private:
  using object = detail::functional_object<tensor>;
  struct nothing {};

  bool mine(tensor const& t) const {
    if (!is_functional_tensor(t)) return false;
    if (!owns(t))
      refuse::with<dispatch_error>(
          "varve: functional_mode: an operand is a functional tensor of another functional_mode; use "
          "one mode, or its value by from_functional_tensor");
    return true;
  }
  static alias& alias_of(tensor const& t) { return object::of(t); }
  static tensor current(tensor const& t) { return object::of(t).current(); }
  std::shared_ptr<detail::functional_run> const& run_of() const { return run_; }
  /// Returns a functional tensor, with the keys of a subclass and those of its value.
  tensor made(tensor const& y, std::shared_ptr<memory> m, detail::view_chain at, layout const& shown,
              tensor const& shares_with) const {
    auto held = std::make_unique<object>(std::move(m), std::move(at), shown, y);
    bool const is_view = shares_with.defined() && y.base().defined();
    unsigned const keys = (default_keys.bits & ~0xFu) | (y.keys().bits & 0xFu) |
                          dispatch_key_set(dispatch_key::subclass).bits |
                          (is_view ? dispatch_key_set::history_bit : 0u);
    tensor const r = tensor::of_object(held.get(), shown.sizes, shown.strides, y.dtype(),
                                       dispatch_key_set::of_bits(keys), shown.offset);
    (void)held.release();
    if (shares_with.defined()) r.alias_storage_of(shares_with);
    if (is_view) r.set_base(shares_with.base().defined() ? shares_with.base() : shares_with, shares_with.origin());
    return r;
  }
  void check_write(boxed_op const& op, boxed_args const& x) const {
    if (!mine(x[0]))
      refuse::with<transform_error>((std::string("varve: functional_mode: ") + op.name() +
                                     ": a plain tensor cannot be written with a functional one; make it functional by "
                                     "to_functional_tensor, or use the functional operator")
                                        .c_str());
  }
  /// True if eager autograd recorded the result of a function of a higher-order operator; the operator would lose this
  /// gradient.
  static bool loses_gradient(tensor const& t) { return t.has_history(); }
  nothing inside() const { return {}; } // functions of a call restore the mode themselves
  nothing below() const { return {}; }

  /// True if a functional tensor of the same memory exists. Neither would show writes into the other, so writes into
  /// both are refused.
  bool shares_memory(tensor const& t) const {
    std::erase_if(given_, [](given const& g) { return g.stands_in.expired(); });
    bool any = false;
    for (given const& g : given_)
      if (g.original.shares_storage(t)) g.stands_in.lock()->shared = any = true;
    return any;
  }
  struct given {
    tensor original;
    std::weak_ptr<memory> stands_in;
  };
  boxed_args with_captures(boxed_args const& x) const {
    return tree_map(
        [&](auto const& t) {
          bool const plain = !t.defined() || t.object() || t.is_wrapped() || t.is_number() || !t.has_data();
          if (t.defined() && t.is_number() && !t.object() && !t.is_wrapped() && t.has_history())
            refuse::argument_is_invalid("aot", "the function captures a number that requires a gradient; pass it as an "
                                               "argument");
          return plain ? t : captures_->stand_in(t);
        },
        x);
  }
  detail::functional_captures* captures_ = nullptr;
  mutable std::vector<given> given_;
  std::shared_ptr<detail::functional_run> run_ = std::make_shared<detail::functional_run>();
};

/// A guard that switches a functional mode on for this thread until the end of the scope. Has no effect if it is on
/// already. Another active functional mode is refused (`dispatch_error`).
class functional_mode_guard {
public:
  explicit functional_mode_guard(functional_mode& mode) {
    layer const* const there = this_thread_state.infra[static_cast<int>(infra_mode::functional)].top;
    if (!there || there->object != &mode) on_.emplace(infra_mode::functional, mode);
  }
  functional_mode_guard(functional_mode_guard const&) = delete;
  functional_mode_guard& operator=(functional_mode_guard const&) = delete;

private:
  std::optional<infra_mode_guard<functional_mode>> on_;
};

} // namespace varve
