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
/// Memory under `functionalize`: a value, and writes into views of it that are delayed until it is read.
///
/// A value of the level stands for memory. Stored are the contents of the memory, the delayed writes, and for each
/// alias the views through which it shows the memory. The value also has a `seen_state`, a version counter and an
/// identity of memory that are independent of its contents.
namespace varve::detail {

/// One step from a value to a view of it, and the steps before it: a chain that begins at the memory that both show.
struct view_step {
  std::shared_ptr<view_step const> before;
  op_table const* op;
  attributes at;
  meta of, shows;
};
using view_chain = std::shared_ptr<view_step const>;

/// The data of one active `functionalize`, or of one functional mode. Memory is numbered, so that a function of a
/// higher-order operator can recognize memory that existed before it.
struct functional_run {
  bool is_mode = false;
  std::uint64_t layer = 0; // for a transform
  std::uint64_t made = 0;
  /// Memory with a smaller number is read-only.
  std::uint64_t writable_from = 0;
  bool ended = false;
  /// True if only transforms above take derivatives and do so by the end of the run. Writes that are hidden from
  /// derivatives are then no concern of this run.
  bool derived_above = false;
  /// True for an exported program, in which writes through detached values are refused as well.
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

/// The memory that aliases share.
template <class T>
struct functional_memory {
  struct update {
    T value;
    view_chain at;
    layout shown; // the position of the value
  };
  std::shared_ptr<functional_run> run;
  T base;
  layout first; // the original layout of the base in the memory that the program sees
  bool row_major;
  std::uint64_t number;
  /// True if operators were recorded below when the memory was made or written into.
  bool recorded;
  std::uint64_t generation = 0;   // number of writes
  std::uint64_t without_grad = 0; // number of writes with gradients off
  /// True if a value with a gradient was overwritten where that is not recorded: with gradients off, or through
  /// `detach`.
  bool hidden = false;
  bool writes_recorded = false;      // whether other writes were recorded
  bool frozen = false;               // whether further writes are refused
  bool shared = false;               // whether another object stands for the same memory of the program
  bool captured = false;             // whether it stands for a tensor that a traced function captures
  bool underived = false;            // whether that tensor requires no gradient
  char const* returned_by = nullptr; // the function that returned it in memory shared with others
  struct source {
    std::shared_ptr<functional_memory> memory;
    std::uint64_t generation;
  };
  std::vector<source> lies_in{}; // memory in which it may lie, with its generation at the time of the return
  std::vector<update> pending{};
  owner_lock reading{};

  functional_memory(std::shared_ptr<functional_run> r, T const& t)
      : run(std::move(r)), base(t), first(memory_layout(t)), row_major(first.contiguous()), number(run->made++),
        recorded(this_thread_state.grad_mode) {}

  bool is_writable() const { return number >= run->writable_from; }
  /// Calls `f` with a memory and with all memory in which it may lie.
  template <class F>
  static void for_each_source(std::shared_ptr<functional_memory> const& m, F const& f) {
    f(m);
    for (source const& s : m->lies_in) for_each_source(s.memory, f);
  }
  /// Delays a write until the memory is read. A write that autograd does not record leaves the gradient of the old
  /// value unchanged; values computed from the new one cannot show that, so the write is noted as hidden.
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
  /// Checks, before a read, that the value is up to date and that its gradient matches.
  void check_read(view_step const* at) const {
    if (!lies_in.empty()) check_sources(returned_by);
    if (hidden && is_grad_enabled() && !is_detached(at))
      refuse_hidden(
          "a value that has a derivative is read after it was written in no_grad mode or through detach, which left "
          "its derivative as it was; read a detached value, or call functionalize around the transform");
  }
  /// Returns the value with all writes applied, and stores it as the new base. A function of a higher-order operator
  /// may be traced separately and leaves the base and the delayed writes unchanged.
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
  /// Returns a view of a value.
  static T shown(T const& b, view_step const* at) {
    return at ? boxed_op{at->op, &at->at}(boxed_args(shown(b, at->before.get()))) : b;
  }

private:
  static bool is_detached(view_step const* at) {
    for (; at; at = at->before.get())
      if (at->op->handle && at->op->handle() == &handle<detach_t>) return true;
    return false;
  }
  /// True if a transform below, or eager autograd, has a gradient of it or, if `tangents` is set, a tangent.
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
  /// True if a derivative may be taken later, through the graph of an active trace. With `surely`: if one will be
  /// taken.
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
    std::vector<T> before{b}; // before each step
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

/// Removes layers that see more than a run does from the stack. For a transform these are it and the transforms above
/// it. A transform that is off its stack has nothing above it; one that has ended is treated as below all later ones.
/// For a mode these are all modes above it, and itself.
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

/// One alias: the memory that it shows, and the views through which it shows it.
template <class T>
struct functional_alias {
  std::shared_ptr<functional_memory<T>> memory;
  view_chain at;
  layout shown; // its layout in the memory for which it stands
  std::uint64_t generation;

  functional_alias(std::shared_ptr<functional_memory<T>> m, view_chain a, layout const& l)
      : memory(std::move(m)), at(std::move(a)), shown(l), generation(memory->generation) {}

  /// Returns the current contents; `now` are those of the last read. If something was written since, the views are
  /// replayed and the result is passed to `keep`; otherwise nothing is done. Threads that read the values of a finished
  /// run do this one after the other.
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
/// An alias of a value that a transform sees.
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
