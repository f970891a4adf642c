// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/owner_lock.hpp>
#include <varve/interpreter/grad_mode.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/create.hpp>
#include <varve/op/view_inverse.hpp>
#include <varve/value/seen_state.hpp>

#include <memory>
#include <vector>

/// @file
/// What stands for memory under `functionalize`: a value, and writes into views of it that wait until somebody reads
/// (FN-1 to FN-8).
///
/// A value of the level stands for memory. Kept are what the memory holds, the writes that wait, and for each alias the
/// views through which it shows the memory. Beside the value lies a `seen_state`, a version counter and an identity of
/// memory apart from what it holds.
namespace varve::detail {

/// One step from a value to a view of it, behind the steps before: a chain from the memory that both show (FN-3, FN-4).
struct view_step {
  std::shared_ptr<view_step const> before;
  op_table const* op;
  attributes at;
  meta of, shows;
};
using view_chain = std::shared_ptr<view_step const>;

/// Of one `functionalize` at work, or of one functional mode: memory is numbered, so that a function of a higher-order
/// operator is told what was there before it.
struct functional_run {
  bool is_mode = false;
  std::uint64_t layer = 0; // of a transform
  std::uint64_t made = 0;
  /// Memory made before this number is only read.
  std::uint64_t writable_from = 0;
  bool ended = false;
  /// Derivatives are those of what is above, and taken by the end of the run: what writes hide from them is no matter
  /// of what is below.
  bool derived_above = false;
  /// ... of an exported program: what detached values are written through is refused in it, too.
  bool exported = false;
};

/// Calls operators on tensors for the inverses of views.
template <class T>
struct tensor_writer {
  template <class Tag, int Facts, class... X>
  T add_node(attributes const& at, meta const&, X const&... x) const {
    return boxed_op{registered_table<Tag, Facts>(), &at}(boxed_args(x...));
  }
  static meta meta_of(T const& t) { return varve::meta_of(t); }
  static T ones(meta const& m) {
    return [](auto const& sizes, auto type) { return varve::full(sizes, 1, type); }(m.sizes, m.type);
  }
};

/// What aliases share (FN-2).
template <class T>
struct functional_memory {
  struct update {
    T value;
    view_chain at;
    layout shown; // where the value lies
  };
  std::shared_ptr<functional_run> run;
  T base;
  layout first; // where the base lay in the memory that the program sees
  bool row_major;
  std::uint64_t number;
  /// Were operators recorded below when it was made, or written into?
  bool recorded;
  std::uint64_t generation = 0;   // one for each write
  std::uint64_t without_grad = 0; // ... with gradients off
  /// Was a value with a gradient written where that is not seen: with gradients off, or through `detach`?
  bool hidden = false;
  bool writes_recorded = false;      // were others recorded?
  bool frozen = false;               // no writes from now on (FN-20)
  bool shared = false;               // another one stands for the same memory of the program
  bool captured = false;             // it stands for a tensor that a traced function captures
  bool underived = false;            // ... which requires no gradient
  char const* returned_by = nullptr; // the function that returned it in memory that others lie in
  struct source {
    std::shared_ptr<functional_memory> memory;
    std::uint64_t generation;
  };
  std::vector<source> lies_in{}; // memory that it may lie in, as it was when it was returned
  std::vector<update> pending{};
  owner_lock reading{};

  functional_memory(std::shared_ptr<functional_run> r, T const& t)
      : run(std::move(r)), base(t), first(memory_layout(t)), row_major(first.contiguous()), number(run->made++),
        recorded(this_thread_state.grad_mode) {}

  bool is_writable() const { return number >= run->writable_from; }
  /// Calls `f` with a memory and all that it may lie in.
  template <class F>
  static void for_each_source(std::shared_ptr<functional_memory> const& m, F const& f) {
    f(m);
    for (source const& s : m->lies_in) for_each_source(s.memory, f);
  }
  /// A write: done when it is read (FN-5). One that autograd does not see leaves the gradient of the value as it was,
  /// which no value says that is made from what was written (FN-15).
  void commit(T const& value, view_chain const& at, layout const& shown) {
    bool const apart = is_detached(at.get());
    if (apart && has_derivative(value, true))
      refuse_hidden("a value with a derivative is written through detach; clone what was detached first");
    if (run->derived_above) {
    } else if (apart || !is_grad_enabled())
      hidden = hidden || has_derivative(base, apart) ||
               ((!apart || run->exported || is_in_trace(base, true)) && is_in_trace(base) && recorded &&
                !(underived && !writes_recorded));
    else writes_recorded = true;
    pending.push_back({value, at, shown});
    ++generation;
    without_grad += !is_grad_enabled();
    recorded = recorded || this_thread_state.grad_mode;
  }
  /// Before a read: its value is that of now, with the gradient of now.
  void check_read(view_step const* at) const {
    if (!lies_in.empty()) check_sources(returned_by);
    if (hidden && is_grad_enabled() && !is_detached(at))
      refuse_hidden(
          "a value that has a derivative is read after it was written in no_grad mode or through detach, which left "
          "its derivative as it was; read a detached value, or call functionalize around the transform");
  }
  /// The value with all writes, which lie behind it from now on (FN-6). A function of a higher-order operator, that may
  /// be traced apart, leaves it as it was.
  T applied() {
    T b = base;
    for (update const& u : pending) b = u.at ? put_through(b, u) : u.value;
    if (row_major && !memory_layout(b).contiguous()) b = clone(b);
    if (is_writable()) {
      base = b;
      pending.clear();
    }
    return b;
  }
  /// A view of a value.
  static T shown(T const& b, view_step const* at) {
    return at ? boxed_op{at->op, &at->at}(boxed_args(shown(b, at->before.get()))) : b;
  }

private:
  static bool is_detached(view_step const* at) {
    for (; at; at = at->before.get())
      if (at->op->handle && at->op->handle() == &handle<detach_t>) return true;
    return false;
  }
  /// Has any transform below a gradient of it, or, when `tangents` count too, a tangent?
  static bool has_derivative(tensor t, bool tangents) {
    for (; t.is_wrapped(); t = t.current())
      if (t.history() || (t.base().defined() && t.base().history()) ||
          (tangents && t.extra().defined() && has_derivatives(t.extra().dtype())))
        return true;
    return t.has_history();
  }
  void check_sources(char const* who) const {
    for (source const& s : lies_in) {
      if (s.memory->generation != s.generation) refuse_overtaken(who);
      s.memory->check_sources(who);
    }
  }
  [[noreturn]] VARVE_COLD static void refuse_overtaken(char const* who) {
    refuse::with<transform_error>((std::string("varve: functionalize: what ") + who +
                                   " returned may lie in memory that was written into since; clone it there")
                                      .c_str());
  }
  /// May a derivative be taken of it later, through the graph of a trace that is at work? `surely`: will it be?
  static bool is_in_trace(tensor t, bool surely = false) {
    for (; t.is_wrapped(); t = t.current())
      if (surely ? is_traced_for_gradient(t.layer()) : is_traced(t.layer())) return true;
    return !surely && this_thread_state.infra[static_cast<int>(infra_mode::proxy)].top;
  }
  [[noreturn]] VARVE_COLD static void refuse_hidden(char const* why) {
    refuse::with<transform_error>((std::string("varve: functionalize: ") + why).c_str());
  }
  T put_through(T const& b, update const& u) const {
    std::vector<dependent<view_step const*, T>> steps;
    for (auto const* s = u.at.get(); s; s = s->before.get()) steps.insert(steps.begin(), s);
    std::vector<T> before{b}; // each step
    auto const value_before = [&](std::size_t k) {
      while (before.size() <= k) {
        view_step const& s = *steps[before.size() - 1];
        before.push_back(boxed_op{s.op, &s.at}(boxed_args(before.back())));
      }
      return before[k];
    };
    T v = u.value;
    tensor_writer<T> w;
    for (auto const* s : steps)
      if (repeats_elements(s->op->handle(), s->at, s->of, s->shows)) {
        meta const m = meta_of(b);
        return w.template add_node<as_strided_scatter_t, 2>(
            attributes(u.shown.strides, dims{u.shown.offset - first.offset}), m, contiguous(b), v);
      }
    for (std::size_t k = steps.size(); k-- > 0;)
      v = put_back(
          w, {steps[k]->op->handle(), steps[k]->at, steps[k]->of, steps[k]->shows}, [&] { return value_before(k); }, v);
    return v;
  }
};

/// Takes away what sees more than a run sees. Of a transform: the transforms above it; one that is off its stack has
/// nothing above it, one that has ended was where later ones are. Of a mode: all above modes, and itself (FN-34).
class below_run {
public:
  explicit below_run(functional_run const& run)
      : stack_(run.is_mode ? this_thread_state.infra[static_cast<int>(infra_mode::functional)]
                           : this_thread_state.transforms),
        saved_(stack_.top), keys_(this_thread_state.included, this_thread_state.excluded | above(run)) {
    layer* l = run.is_mode ? nullptr : saved_;
    while (l && (run.ended ? l->id > run.layer : l->id != run.layer)) l = l->below;
    if (l && l->id == run.layer) l = l->below;
    else if (!run.ended && !run.is_mode) l = saved_;
    set_top(stack_, l);
  }
  below_run(below_run const&) = delete;
  below_run& operator=(below_run const&) = delete;
  ~below_run() { set_top(stack_, saved_); }

private:
  static dispatch_key_set above(functional_run const& run) {
    return run.is_mode ? dispatch_key_set::full().above(dispatch_key::dispatch_mode) : dispatch_key_set{};
  }
  layer_stack& stack_;
  layer* saved_;
  key_guard keys_;
};

/// One alias (FN-1): the memory that it shows, and through which views.
template <class T>
struct functional_alias {
  std::shared_ptr<functional_memory<T>> memory;
  view_chain at;
  layout shown; // where it lies in the memory that it stands for
  std::uint64_t generation;

  functional_alias(std::shared_ptr<functional_memory<T>> m, view_chain a, layout const& l)
      : memory(std::move(m)), at(std::move(a)), shown(l), generation(memory->generation) {}

  /// What it holds, `now` as it was read last: regenerated by replaying its views when something was written since
  /// (FN-6, FN-7), which `keep` is given; nothing is done otherwise (FN-10). Threads that read what a run left behind
  /// do it one after the other.
  template <class Keep>
  T up_to_date(T const& now, Keep const& keep) {
    owner_lock::held const one(memory->reading);
    memory->check_read(at.get());
    if (generation == memory->generation) return now;
    below_run const lower(*memory->run);
    set_grad_enabled const as_written(memory->recorded);
    T const y = functional_memory<T>::shown(memory->applied(), at.get());
    if (!memory->is_writable()) return y;
    generation = memory->generation;
    keep(y);
    return y;
  }
};
/// ... of a value that a transform sees.
template <class T>
struct seen_alias final : seen_state, functional_alias<T> {
  using functional_alias<T>::memory, functional_alias<T>::at;

  seen_alias(std::shared_ptr<functional_memory<T>> m, view_chain a, layout const& l)
      : functional_alias<T>(std::move(m), std::move(a), l) {}
  layout const& layout_shown() const override { return this->shown; }
  static seen_alias& of(tensor const& t) { return *static_cast<seen_alias*>(t.state()); }
  tensor current(tensor const& t) override {
    return this->up_to_date(static_cast<T const&>(t.inner()), [&](T const& now) { t.set_inner(now); });
  }
  void detach_(tensor const& t) override {
    if (at) refuse::argument_is_invalid("detach_", "a view cannot be detached in place; use detach");
    if (!memory->is_writable())
      refuse::with<transform_error>(
          "varve: functionalize: detach_: the function of a higher-order operator detaches what it "
          "captures; use detach");
    set_grad_enabled const off(false);
    T const now = current(t);
    below_run const lower(*memory->run);
    memory->base = detach(now);
    memory->hidden = false;
    t.set_inner(memory->base);
  }
};

} // namespace varve::detail
