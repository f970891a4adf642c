// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/custom/custom_function_node.hpp>
#include <varve/custom/kept_custom_call.hpp>
#include <varve/hop/boxed_some_lanes.hpp>
#include <varve/interpreter/write_level.hpp>

/// @file
/// How each layer of the thread's stack processes a call of a custom function on tensors. The rules are those of
/// `rules<custom_function_t>`.
namespace varve::detail {

/// A call on tensors, in the form that the rules need.
template <class T>
struct boxed_custom_call {
  using tag = custom_function_t;
  custom_function_ptr f;
  layer const* self;

  boxed_args operator()(boxed_args const& x) const { return call_custom<>(f, x); }
  boxed_context context(boxed_args const& y, boxed_tracked const& t) const {
    std::vector<bool> needs;
    for (auto const& x : *t.of) needs.push_back(mine(x) && x.history());
    return f->context(needs, t.primal, y);
  }
  boxed_context context(boxed_args const& y, boxed_dual const& d) const {
    std::vector<bool> needs;
    for (auto const& t : d.tangent) needs.push_back(t.defined());
    boxed_context c = f->context(needs, d.primal, y);
    refuse_saved_as_is(*f, c, d.primal, y);
    return c;
  }
  boxed_args record(dynamic_level const& in, boxed_context const& c, boxed_args const& y,
                    boxed_tracked const& t) const {
    if (!self->grad_mode) return y;
    std::vector<edge> edges;
    for (auto const& x : *t.of) edges.push_back(mine(x) ? edge(x.history()) : edge());
    return record_custom<T, false>(f, c, std::move(edges), t.primal, y,
                                   [&](tensor const& v, edge const& e) { return in.tracked_value(v, e); });
  }
  boxed_args tangent(boxed_context const& c, boxed_dual const& d) const {
    boxed_args t;
    for (int k = 0; k < d.primal.size(); ++k)
      t.push_back(d.tangent[k].defined() || !d.primal[k].defined()
                      ? d.tangent[k]
                      : T(detail::constant_zeros(static_cast<T const&>(d.primal[k]))));
    return f->jvp(c, t);
  }
  boxed_args results(boxed_context const& c, boxed_args const& y, boxed_args closed, boxed_args const& x) const {
    for (int i = 0; i < x.size(); ++i)
      if ((c.dirty_operands >> i & 1) && !mine(x[i]))
        refuse::with<transform_error>(
            (std::string("varve: ") + self->kind->name + ": " + f->name() +
             ": a captured tensor, which the transform does not see, was marked dirty; pass it as an "
             "argument, or return a new value")
                .c_str());
    for (int k = 0; k < y.size(); ++k)
      if (c.constant_results >> k & 1) closed[k] = y[k];
    for (int k = 0; k < y.size(); ++k)
      for (auto const& t : x)
        if (mine(closed[k]) && mine(t) && y[k].defined() && y[k].shares_storage(t))
          closed[k].set_base(t.base().defined() ? t.base() : t, view_origin::custom); // may not be written into
    // nor if it shares another result's memory
    for (int k = 0; k < y.size(); ++k)
      for (int j = 0; j < y.size(); ++j)
        if (j != k && mine(closed[k]) && y[k].defined() && y[j].defined() && y[k].shares_storage(y[j]))
          closed[k].set_base(y[j], view_origin::custom);
    return same_objects(y, std::move(closed), x, c.dirty_operands);
  }
  boxed_args mapped(dynamic_level const&, boxed_operands const& o) const {
    batch_level const& level = batch_level::of(*self);
    boxed_batch b{{}, level.batch_size, level.random};
    for (auto const& t : *o.from) b.mapped.push_back(mine(t));
    boxed_args const y = f->vmap({b.n, b.random}, b.mapped, o.value);
    return y.size() > 0 ? y : call_custom<>(std::make_shared<mapped_custom_function<>>(f, std::move(b)), o.value);
  }
  /// Replaces results by operands. An operand that was written into and returned is the same object at every level.
  boxed_args same_objects(boxed_args const& y, boxed_args closed, boxed_args const& x, unsigned which = ~0u) const {
    for (int k = 0; k < y.size(); ++k)
      for (int i = 0; i < x.size(); ++i)
        if ((which >> i & 1) && mine(x[i]) && y[k].is(x[i].inner())) {
          write_payload(x[i], closed[k], i, y.size());
          closed[k] = x[i];
        }
    return closed;
  }

private:
  void write_payload(tensor const& x, tensor const& written, int target, int results) const {
    if (!written.is_wrapped() || written.layer() != self->id) return;
    if (edge const& e = written.history()) {
      check_write(f->name(), x);
      refuse_one_of_several(f->name(), x, results);
      rebase(level_views<T>{}, x, e, target);
    }
    if (written.extra().defined()) change_tangent<T>(x, written.extra());
  }
  bool mine(tensor const& t) const { return t.defined() && t.is_wrapped() && t.layer() == self->id; }
};
/// The operator of custom functions on tensors. Modes process what `forward` does; only the functional mode and traces
/// receive a call as a whole.
template <class T>
class custom_operator : public higher_order_operator {
  using rule = rules<typename boxed_custom_call<T>::tag>;

public:
  custom_operator() : higher_order_operator(hop_handle<custom_function_t>) {
    mark_transparent();
    impl(dispatch_key::composite_explicit, [](boxed_hop const& c, boxed_args const& x) {
      no_grad const off; // the operators of forward are not recorded
      return custom_function_of(c)->forward(x);
    });
    impl(dispatch_key::autograd, [](boxed_hop const& c, boxed_args const& x) {
      boxed_args const y =
          c.op->redispatch(c, keys_of_call(x) - dispatch_key_set(dispatch_key::autograd_functionality), x);
      return record_custom_eagerly<T>(custom_function_of(c), x, y);
    });
    transform("vmap", [](auto const& in, auto const& call, auto const& x) { return rule::vmap(in, call, x); });
    transform("jvp", [](auto const& in, auto const& call, auto const& x) { return in.own(rule::jvp(in, call, x), x); });
    transform("grad",
              [](auto const& in, auto const& call, auto const& x) { return in.own(rule::grad(in, call, x), x); });
    auto const lanes = [](layer& l, boxed_hop const& c, boxed_args const& x) {
      return static_cast<lanes_layer<dependent<void, T>>&>(l).below(x, custom_function_of(c)->name(), c);
    };
    impl<decltype(lanes), layer&>("lanes", lanes);
    auto const trace = [](layer& l, boxed_hop const& c, boxed_args const& x) {
      return trace_custom<T>(l, custom_function_of(c), x);
    };
    impl<decltype(trace), layer&>("trace", trace);
  }

private:
  template <class R>
  void transform(char const* kind, R r) {
    auto f = [r](layer& l, boxed_hop const& c, boxed_args const& x) {
      auto const& in = *static_cast<dynamic_level*>(l.object);
      bool any = false;
      for (auto const& t : x) any = any || in.mine(t);
      lowered const off;
      boxed_custom_call<T> const call{custom_function_of(c), &l};
      return any ? r(in, call, x) : in.own(call(x), x);
    };
    impl<decltype(f), layer&>(kind, f);
  }
};
#if VARVE_DEFINES
template <class T>
higher_order_operator& custom_function_operator() {
  static auto* const op = new custom_operator<dependent<tensor, T>>; // never destroyed, so that it outlives every call
  (void)&known_from_start<&custom_function_operator<T>>;
  return *op;
}
template <class T>
boxed_args call_custom(custom_function_ptr const& f, boxed_args const& x) {
  if (are_unwatched(x.begin(), static_cast<std::size_t>(x.size()))) { // no interpreter receives the call
    no_grad const off;
    return f->forward(x);
  }
  return custom_function_operator<T>()({custom_forward{f}}, x);
}
#endif

} // namespace varve::detail
