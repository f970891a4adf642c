// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/functional_memory.hpp>
#include <varve/op/create.hpp>
#include <varve/op/in_place.hpp>

/// @file
/// How writes are removed from a run of operators. There are two hosts: a level of the transform `functionalize`
/// (`interpreter/functionalize.hpp`), and the mode below other modes (`functional/functional_mode.hpp`). The inverses
/// of views share their source with the pass over graphs (`op/view_inverse.hpp`, `pass/functionalize.hpp`).
namespace varve::detail {

/// Computes what an operator without a functional form writes into its first operand, if the program allows that
/// (`hop/auto_functionalized.hpp`).
inline std::atomic<tensor (*)(boxed_op const&, boxed_args const&)> writes_into_copy{nullptr};

/// The core of both hosts. Whether a `reshape` is a view or a copy depends on the memory that the program sees, not on
/// the value that now stands for it.
///
/// A `Host` defines its values: `mine(t)`; `current(t)` and `alias_of(t)` for one that stands for memory; `made(y,
/// memory, chain, layout, shares_with)` for a new one; `run_of()`; and the writes that it refuses, in `check_write(op,
/// x)`.
template <class T, class Host>
struct functional_core {
  using memory = functional_memory<T>;
  using alias = functional_alias<T>;

  /// Processes an operator that does not write.
  tensor call(boxed_op const& op, boxed_args const& x) const {
    bool const looks =
        op.table->handle && is_invertible_view(op.table->handle()); // a view is read when its elements are
    auto const opened = [&] {
      set_grad_enabled const as_read(this_thread_state.grad_mode && !looks);
      return open_functional(x);
    };
    boxed_args const plain = opened();
    return close_functional(op, op(plain), x, plain);
  }

  /// Returns the current values of operands.
  boxed_args open_functional(boxed_args const& x) const {
    boxed_args r;
    for (auto const& t : x) r.push_back(host().mine(t) ? Host::current(t) : t);
    return r;
  }
  /// Returns a value with memory of its own.
  tensor wrap(T const& y) const {
    return host().made(y, std::make_shared<memory>(host().run_of(), y), nullptr, memory_layout(y), {});
  }
  boxed_args wrap(boxed_args const& y) const {
    return tree_map([&](auto const& t) { return t.defined() ? wrap(t) : t; }, y);
  }
  /// Wraps the result of a function. A result that is a view of an operand, or shares memory with another result
  /// (`shared`), may not be written into, since its inverse is unknown.
  tensor wrap_result(char const* who, T const& y, boxed_args const& plain, bool shared = false) const {
    tensor const r = wrap(y);
    if (shared) Host::alias_of(r).memory->returned_by = who;
    for (auto const& t : plain)
      if (t.defined() && y.shares_storage(t)) Host::alias_of(r).memory->returned_by = who;
    return r;
  }
  /// Wraps the result of an operator: it is an operand, or shows the memory of one, or has memory of its own. A result
  /// in the memory of a captured tensor is not wrapped.
  tensor close_functional(boxed_op const& op, T const& y, boxed_args const& x, boxed_args const& plain) const {
    if (!y.defined()) return y;
    for (int k = 0; k < x.size(); ++k)
      if (y.is(plain[k])) return x[k];
    if (op.table->kind == op_kind::view && host().mine(x[0])) return view(op, y, x[0], plain[0]);
    // a mode below created it from a capture
    if (op.table->kind == op_kind::view && y.object() && !x[0].object()) return y;
    for (int k = 0; k < x.size(); ++k) {
      if (!x[k].defined() || !y.shares_storage(plain[k])) continue;
      if (!host().mine(x[k])) return y;
      alias const& of = Host::alias_of(x[k]);
      if (!(meta_of(plain[k]) == meta_of(y))) refuse_alias(op);
      return host().made(y, of.memory, of.at, of.shown, x[k]);
    }
    return wrap(y);
  }

  /// Processes an in-place operator: runs the functional one and commits its result to the memory. On plain values the
  /// operator itself runs.
  tensor write(boxed_op const& op, boxed_args const& x) const {
    bool any = false;
    for (auto const& t : x) any = any || host().mine(t);
    if (!any) return op(x), x[0];
    host().check_write(op, x);
    alias& of = Host::alias_of(x[0]);
    check_writable(op.name(), of);
    boxed_args const plain = open_functional(x);
    T const y = written(op, plain, of.shown.strides);
    of.memory->commit(y, of.at, of.shown);
    x[0].bump_version();
    return x[0];
  }
  /// Replaces the value of an operand that a function has written into. This counts as one write.
  void replace(char const* who, tensor const& x, T const& y) const {
    alias& of = Host::alias_of(x);
    if (!of.memory->is_writable()) refuse_write_of_capture(who);
    if (of.memory->frozen) refuse_frozen(who);
    of.memory->commit(y, of.at, of.shown);
    x.bump_version();
  }
  /// True if a value, or one that shares its memory, was written into since it was made.
  static bool is_written(tensor const& t) { return Host::alias_of(t).memory->generation != 0; }

  static bool share_memory(tensor const& a, tensor const& b) {
    return Host::alias_of(a).memory == Host::alias_of(b).memory;
  }

  /// Forbids writes into the memory of a value from now on, because `who` returned a view of it, or returned it as a
  /// view.
  static void refuse_writes(tensor const& t, char const* who) { Host::alias_of(t).memory->returned_by = who; }

  /// Forbids writes into the memory of a value, and reads of it after a write into memory `m`, in which it may lie.
  static void lie_in(tensor const& t, std::shared_ptr<memory> const& m, char const* who) {
    refuse_writes(t, who);
    auto& sources = Host::alias_of(t).memory->lies_in;
    for (auto const& s : sources)
      if (s.memory == m) return;
    sources.push_back({m, m->generation});
  }
  static std::shared_ptr<memory> const& memory_of(tensor const& t) { return Host::alias_of(t).memory; }

  /// True if autograd recorded any of the writes.
  static bool writes_recorded(tensor const& t) { return Host::alias_of(t).memory->writes_recorded; }

  /// Makes existing memory read-only while a function of a higher-order operator runs.
  class inner_function {
  public:
    explicit inner_function(functional_core const& in) : run_(*in.host().run_of()), before_(run_.writable_from) {
      run_.writable_from = run_.made;
    }
    inner_function(inner_function const&) = delete;
    inner_function& operator=(inner_function const&) = delete;
    ~inner_function() { run_.writable_from = before_; }

  private:
    functional_run& run_;
    std::uint64_t before_;
  };

private:
  Host const& host() const { return static_cast<Host const&>(*this); }
  /// Returns a view as the program sees it. A view that strides cannot express is a copy, whatever the current layout
  /// of the memory is.
  tensor view(boxed_op const& op, T const& y, tensor const& x, tensor const& plain) const {
    alias const& of = Host::alias_of(x);
    tensor const shadow = tensor::meta(x.sizes(), x.dtype()).with_layout(of.shown, false),
                 shown = op.table->meta(*op.at, boxed_args(shadow));
    if (!shown.shares_storage(shadow))
      return of.memory->check_read(of.at.get()), wrap(y.shares_storage(plain) ? T(clone(y)) : y);
    return host().made(
        y, of.memory, std::make_shared<view_step const>(view_step{of.at, op.table, *op.at, meta_of(plain), meta_of(y)}),
        shown.where(), x);
  }
  void check_writable(char const* op, alias const& of) const {
    if (!of.memory->is_writable()) refuse_write_of_capture(op);
    if (of.memory->frozen) refuse_frozen(op);
    if (of.memory->captured)
      refuse::with<transform_error>((std::string("varve: ") + op +
                                     " writes into a tensor that the traced function captures; pass it as an argument")
                                        .c_str());
    if (of.memory->shared)
      refuse::with<transform_error>(
          (std::string("varve: functionalize: ") + op +
           " writes into a tensor in the memory of another one that was made functional as well, "
           "which would not show it; make one of them functional, and take views of it")
              .c_str());
    if (char const* const who = of.memory->returned_by)
      refuse::with<transform_error>((std::string("varve: functionalize: ") + op +
                                     " writes into a view of an operand or of another result that " + who +
                                     " returned; clone it there")
                                        .c_str());
    for (view_step const* s = of.at.get(); s; s = s->before.get())
      if (!is_invertible_view(s->op->handle()))
        refuse::with<missing_rule>((std::string("varve: functionalize: ") + op + " writes into a view made by " +
                                    s->op->name + ", whose inverse is not known; clone it first")
                                       .c_str());
      else if (!of.memory->row_major && repeats_elements(s->op->handle(), s->at, s->of, s->shows))
        refuse::with<missing_rule>((std::string("varve: functionalize: ") + op + " writes into a part of what " +
                                    s->op->name + " repeats, of a value that is not row-major; clone it first")
                                       .c_str());
  }
  /// Returns what an in-place operator writes, in the dtype and shape of its operand and in memory of its own.
  T written(boxed_op const& op, boxed_args const& x, dims const& strides) const {
    T const& into = x[0];
    op_table const* const f = op.table->functional;
    bool const copies = op.table->handle && op.table->handle() == &handle<copy__t>;
    if (auto const into_copy = writes_into_copy.load(std::memory_order_acquire); !copies && !f && into_copy) {
      check_in_place(op.name(), into, strides);
      return into_copy(op, x);
    }
    if (!copies && !f)
      refuse::with<missing_rule>(
          (std::string("varve: functionalize: ") + op.name() +
           " writes into its operand and has no functional form; say `using functional = ...` in its "
           "rules, or include <varve/hop/auto_functionalized.hpp>")
              .c_str());
    meta in[saved_values::most];
    for (int k = 0; k < x.size(); ++k) in[k] = meta_of(x[k]);
    require_room(op.name(), in[0], copies ? meta{in[0].type, in[1].sizes} : f->handle()->shape(*op.at, in, x.size()));
    check_in_place(op.name(), into, strides);
    if (copies && x[1].is_number()) // not the plain number, which a trace would make a constant
      return bind<full_t>(into.sizes(), dims{static_cast<index_t>(into.dtype())})(static_cast<T const&>(x[1]));
    T y = copies ? static_cast<T const&>(x[1]) : T(boxed_op{f, op.at}(x));
    bool fresh = !copies;
    if (y.dtype() != into.dtype()) y = to(y, into.dtype()), fresh = true;
    if (!(y.sizes() == into.sizes())) y = expand(y, into.sizes()), fresh = false;
    return fresh ? y : T(clone(y));
  }
  [[noreturn]] VARVE_COLD static void refuse_frozen(char const* who) {
    refuse::with<transform_error>(
        (std::string("varve: functionalize: ") + who + " writes into memory that was frozen; clone the value first")
            .c_str());
  }
  [[noreturn]] VARVE_COLD static void refuse_write_of_capture(char const* who) {
    refuse::with<transform_error>(
        (std::string("varve: functionalize: ") + who +
         ": the function of a higher-order operator writes into what it captures; pass it as an "
         "operand and return the new value")
            .c_str());
  }
  [[noreturn]] VARVE_COLD static void refuse_alias(boxed_op const& op) {
    refuse::with<transform_error>(
        (std::string("varve: functionalize: ") + op.name() +
         " returned a value in the memory of an operand, but is no view (op_kind::view): its inverse "
         "is not known")
            .c_str());
  }
};

} // namespace varve::detail
