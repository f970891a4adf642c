// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fake/fake_mode.hpp>
#include <varve/fake/known_operators.hpp>
#include <varve/shape/environment.hpp>

/// @file
/// Higher-order operators on fake tensors. Each function runs once, whatever data would decide, and yields metadata.
namespace varve::detail {

/// Runs a function with the mode on again. If data decide whether or how often it runs (`maybe`), older memory that it
/// writes loses its constants.
template <class Mode>
boxed_args run_inside(Mode& mode, boxed_function const& f, boxed_args const& x, bool maybe = true) {
  fake_mode_guard const on(mode);
  typename Mode::uncertain const writes(mode, maybe);
  return f(x);
}
/// Returns a fresh result that aliases nothing and is no constant. It has the history of the function's result.
template <class Mode>
tensor fresh(Mode& mode, tensor const& t, dims const& sizes) {
  if (!t.has_history()) return mode.like(t, sizes);
  fake_mode_guard const on(mode);
  return mode.forgotten(clone(expand(static_cast<dependent<tensor, Mode> const&>(t), sizes)));
}
template <class Mode>
boxed_args fresh(Mode& mode, boxed_args const& like) {
  return tree_map([&](tensor const& t) { return fresh(mode, t, t.sizes()); }, like);
}

/// Returns the size of a result of two branches. If both sizes are equal and depend only on the first `known` symbols,
/// which existed before the branches, the size is kept. Otherwise it is a new symbol whose range covers both.
template <class Mode>
extent merged_size(Mode& mode, extent a, extent b, meta const& of_a, meta const& of_b, std::size_t known) {
  shape_environment* const e = mode.environment();
  bool const data = e && (e->depends_on_data(a, known) || e->depends_on_data(b, known));
  if (!data && (known_equal(a, b) || (e && e->statically_known_true(relation::equal, a, b)))) return a;
  if (!e) require_alike(of_a, of_b); // refuses
  return e->unbacked_between(e->range(a), e->range(b));
}
/// Returns the dimensions in memory order, the largest stride first. Dimensions of equal stride have falling indices.
template <class Mode>
dims order_of_strides(Mode& mode, layout const& l) {
  shape_environment* const e = mode.environment();
  auto const size = [&](extent s) -> index_t {
    if (s.is_number()) return s.number();
    return e && !e->depends_on_data(s) ? e->hint(s) : INT64_MAX; // depends on data: larger than any number
  };
  dims r;
  for (int k = l.sizes.n - 1; k >= 0; --k) {
    int at = 0;
    while (at < r.n && size(l.strides[static_cast<int>(r[at])]) >= size(l.strides[k])) ++at;
    r.insert(at, k);
  }
  return r;
}
/// True if a dimension of size other than 1 has stride 0. Such a layout has no definite order of dimensions.
inline bool shows_again(layout const& l) {
  bool any = false;
  for (int k = 0; k < l.sizes.n; ++k) any = any || (known_equal(l.strides[k], 0) && !known_equal(l.sizes[k], 1));
  return any;
}
/// Returns the result of two branches between which data choose. If the branches have different memory orders, and one
/// has no definite order, the result is row-major.
template <class Mode>
tensor merged(Mode& mode, tensor const& a, tensor const& b, std::size_t known) {
  meta const of_a = meta_of(a), of_b = meta_of(b);
  if (a.dtype() != b.dtype() || a.dim() != b.dim()) require_alike(of_a, of_b); // refuses
  layout const la = a.where(), lb = b.where();
  layout r = la;
  for (int k = 0; k < la.sizes.n; ++k) r.sizes[k] = merged_size(mode, la.sizes[k], lb.sizes[k], of_a, of_b, known);
  dims order = order_of_strides(mode, la);
  bool const alike = order == order_of_strides(mode, lb);
  if (!alike && (shows_again(la) || shows_again(lb)))
    for (int k = 0; k < order.n; ++k) order[k] = k;
  else if (!alike)
    refuse::with<shape_error>(
        "varve: cond: the branches give results whose dimensions lie in memory in different orders; make "
        "both contiguous");
  extent stride = 1;
  for (int i = order.n; i-- > 0;) {
    int const k = static_cast<int>(order[i]);
    r.strides[k] = known_equal(la.strides[k], 0) && known_equal(lb.strides[k], 0) ? extent(0) : stride;
    if (!known_equal(r.strides[k], 0)) stride *= r.sizes[k];
  }
  r.offset = 0;
  tensor const t = fresh(mode, a.has_history() ? a : b, r.sizes);
  return t.has_history() ? t : t.with_layout(r, false);
}
inline tensor fake_memory::either(tensor const& a, tensor const& b) const {
  fake_mode mode(of);
  shape_environment* const e = mode.environment();
  bool data = false;
  for (tensor const& t : {a, b})
    for (extent const s : t.sizes()) data = data || (e && e->depends_on_data(s));
  return data ? merged(mode, a, b, e->symbols().size()) : tensor();
}
/// Runs a call of one function, which makes no decision, or of two functions between which data choose.
template <class Mode>
boxed_args fake_call(Mode& mode, boxed_hop const& call, boxed_args const& x) {
  op_handle const& node = *call.op->node();
  boxed_args in = part(x, node.hop.given_from, x.size());
  if (node.hop.writes_copy) in[0] = fresh(mode, in[0], in[0].sizes());
  if (call.functions.size() == 1) return run_inside(mode, call.functions[0], in, false);
  std::size_t const known = mode.environment() ? mode.environment()->symbols().size() : 0;
  boxed_args const a = run_inside(mode, call.functions[0], in), b = run_inside(mode, call.functions[1], in);
  if (a.size() != b.size())
    refuse::with<shape_error>("varve: cond: both functions must return the same number of values");
  return tree_map([&](tensor const& u, tensor const& v) { return merged(mode, u, v, known); }, a, b);
}
/// Returns a row, as one step of a loop reads it.
template <class Mode>
tensor row(Mode& mode, tensor const& x) {
  dims const sizes = drop_first(x.sizes());
  if (!this_thread_state.grad_mode || !x.has_history() || known_equal(x.sizes()[0], 0)) return mode.like(x, sizes);
  fake_mode_guard const on(mode);
  return mode.forgotten(clone(select(static_cast<dependent<tensor, Mode> const&>(x), 0, 0)));
}
/// Runs a loop: one step, whatever the number of steps. The number of steps of a `while_loop` is not known. Without a
/// bound, the number of rows that it would keep for a gradient is not known either.
template <class Mode>
boxed_args fake_loop(Mode& mode, boxed_hop const& call, boxed_args const& x) {
  boxed_scan const op = boxed_scan::of(call, nullptr);
  if (op.condition && op.outputs && known_equal(op.length, 0))
    refuse::with<data_dependent_error>(
        (std::string("varve: ") + op.op->name() +
         ": its gradient keeps a row for each step, and how many there are depends on data, "
         "which fake tensors have not; say how many there are at most, while_loop<100>(...), or use scan")
            .c_str());
  boxed_args step;
  extent rows = op.length;
  for (int k = 0; k < x.size(); ++k) {
    bool const walked = k >= op.carried && k < op.carried + op.scanned;
    if (walked) rows = x[k].sizes()[0];
    step.push_back(walked ? row(mode, x[k]) : x[k]);
  }
  if (op.condition)
    if (boxed_args const go = run_inside(mode, op.condition, step);
        go.size() != 1 || go[0].dim() || go[0].dtype() != dtype::bool_)
      refuse::argument_is_invalid(op.op->name(), "the condition must give one bool");
  boxed_args const y = run_inside(mode, [&](boxed_args const& a) { return op.unwritten(op.f, a); }, step);
  require_kept(part(step, 0, op.carried), part(y, 0, op.carried));
  boxed_args r = fresh(mode, part(y, 0, op.carried));
  for (int k = op.carried; k < y.size(); ++k) r.push_back(fresh(mode, y[k], prepend(y[k].sizes(), dims{rows})));
  return r;
}
/// Registers the rule of an operator. The operator's node in graphs describes which operands the functions receive.
template <class Mode>
void register_fake_rule(higher_order_operator& op) {
  if (op.node() && !op.node()->hop.is_composite && !op.template has_mode<Mode>())
    op.template impl_mode<Mode>(op.node()->hop.carried ? &fake_loop<Mode> : &fake_call<Mode>);
}
/// Registers the rules of all operators that are known, once.
template <class Mode>
void register_fake_rules() {
  static bool const once = [] {
    know_higher_order_operators();
    higher_order_operator::for_each([](higher_order_operator& op) { register_fake_rule<Mode>(op); });
    return true;
  }();
  (void)once;
}

} // namespace varve::detail
