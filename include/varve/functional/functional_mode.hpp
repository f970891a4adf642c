// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/functional/functional_function.hpp>
#include <varve/functional/functional_tensor.hpp>
#include <varve/transform/recorded_hop.hpp>

#include <optional>

namespace varve {

namespace detail {
/// Of a function that is traced under a functional mode: what stands for a tensor that it captures, a functional one.
struct functional_captures {
  virtual tensor stand_in(tensor const& captured) = 0;

protected:
  ~functional_captures() = default;
};
template <class T>
struct ahead_of_time;
} // namespace detail

/// The mode under which no operator writes (`FunctionalTensorMode`): the rules of `functionalize`, below transforms,
/// autograd and all user modes, above the tracer and fake tensors (MD-5). A mode below sees functional operators only;
/// user modes see the program as it is written.
///
///     functional_mode mode;
///     functional_mode_guard const on(mode);
///     tensor t = mode.to_functional_tensor(x);
///     add_(select(t, 0, 0), 1.0);           // below: select, add, select_scatter
///     tensor y = from_functional_tensor(t); // x is as it was
///
/// Results of operators under it are functional tensors. In-place operators on plain tensors write as ever; with a
/// functional operand they are refused (`transform_error`, FN-23). Higher-order operators are called with functions
/// none of which writes, custom functions as calls. Errors otherwise as those of `functionalize`. A mode is used by one
/// thread at a time. FN-28 to FN-38.
class functional_mode : detail::functional_core<tensor, functional_mode> {
  using core = detail::functional_core<tensor, functional_mode>;
  friend core;
  template <class Host>
  friend struct detail::functional_fn;
  template <class Host>
  friend boxed_args detail::functional_hop(Host const&, boxed_hop const&, boxed_args const&);
  template <class On, class Host>
  friend boxed_args detail::functional_custom_call(Host const&, detail::custom_function_ptr const&, boxed_args const&);
  template <class T>
  friend struct detail::ahead_of_time;

public:
  static constexpr bool supports_higher_order_operators = true;

  functional_mode() {
    run_->is_mode = true;
    detail::record_hops();
  }
  functional_mode(functional_mode const&) = delete;
  functional_mode& operator=(functional_mode const&) = delete;

  /// A functional tensor that holds a tensor, and memory of its own: writes do not reach the original. Of two tensors
  /// in one memory neither may be written into (`transform_error`): make one functional, and take views of it. It
  /// requires a gradient if that does, and is a leaf if that is one (FN-35). `value_error` for functional tensors
  /// (FN-38).
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
  /// Is it a functional tensor of this mode?
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
  /// A custom function, erased, is called as one.
  static boxed_args process_custom(functional_mode const& mode, void const* function, boxed_args const& x) {
    return detail::functional_custom_call<void>(mode, *static_cast<detail::custom_function_ptr const*>(function),
                                                mode.captures_ ? mode.with_captures(x) : x);
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
  /// Beside the keys of a subclass it has those of what it holds (FN-14).
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
                                     "to_functional_tensor, or use the functional operator (FN-23)")
                                        .c_str());
  }
  /// What eager autograd recorded of the function of a higher-order operator leads into that.
  static bool loses_gradient(tensor const& t) { return t.has_history(); }
  nothing inside() const { return {}; } // functions of a call put the mode back by themselves
  nothing below() const { return {}; }

  /// Is there a functional tensor of the same memory? Then neither shows what is written into the other: writes are
  /// refused.
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
          return plain ? t : captures_->stand_in(t);
        },
        x);
  }
  detail::functional_captures* captures_ = nullptr;
  mutable std::vector<given> given_;
  std::shared_ptr<detail::functional_run> run_ = std::make_shared<detail::functional_run>();
};

/// Switches a functional mode on for this thread until the end of the scope. One that is on already stays as it is
/// (FN-30); a second one is refused (`dispatch_error`, FN-38).
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
