// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/functional_memory.hpp>
#include <varve/interpreter/write_level.hpp>
#include <varve/op/in_place.hpp>

/// @file
/// A transform of tensors only. Whether a `reshape` is a view or a copy is asked of the memory that the program sees,
/// not of the value that stands for it by now. Inverses of views are one text with the pass over graphs
/// (`op/view_inverse.hpp`, `pass/functionalize.hpp`). All higher-order operators have one rule (`layer::process_hop`),
/// which a rule registered for one of them precedes; a custom function is called one level below in its functional
/// form, a custom function again.
namespace varve {

/// Takes writing out of programs: each value stands for memory, an in-place operator runs as the functional one and
/// becomes what that memory holds, and views are made anew when they are read after it. Below, no operator writes (FN-1
/// to FN-13). Of static values there is nothing to take out: they have no in-place operators, and traces lose theirs
/// when they are finished.
template <class T>
struct functionalize_interpreter : dynamic_level {
  static constexpr char const* kind = "functionalize";
  static constexpr dispatch_key_set keys = transform_keys(transform_type::functionalize);
  std::shared_ptr<detail::functional_run> run = std::make_shared<detail::functional_run>();

  using memory = detail::functional_memory<T>;
  using alias = detail::functional_alias<T>;

  tensor process(boxed_op const& op, boxed_args const& x) const {
    bool const looks =
        op.table->handle && detail::is_invertible_view(op.table->handle()); // a view is read when its elements are
    auto const opened = [&] {
      set_grad_enabled const as_read(this_thread_state.grad_mode && !looks);
      return open_functional(x);
    };
    boxed_args const plain = opened();
    return close_functional(op, op(plain), x, plain);
  }

  /// What values hold, up to date.
  boxed_args open_functional(boxed_args const& x) const {
    boxed_args r;
    for (auto const& t : x) r.push_back(mine(t) ? t.current() : t);
    return r;
  }
  /// A value with memory of its own.
  tensor wrap(T const& y) const {
    run->layer = self->id;
    return seen(y, std::make_shared<memory>(run, y), nullptr, detail::memory_layout(y), {});
  }
  boxed_args wrap(boxed_args const& y) const {
    return tree_map([&](auto const& t) { return t.defined() ? wrap(t) : t; }, y);
  }
  /// What a function returned: a view of an operand, or of what another result lies in (`shared`), is not to be written
  /// into, since how to put it back is not known.
  tensor wrap_result(char const* who, T const& y, boxed_args const& plain, bool shared = false) const {
    tensor const r = wrap(y);
    if (shared) alias::of(r).memory->returned_by = who;
    for (auto const& t : plain)
      if (t.defined() && y.shares_storage(t)) alias::of(r).memory->returned_by = who;
    return r;
  }
  /// A result is the operand that it is, or shows the memory of one, or has its own. What lies in the memory of
  /// captured tensors is left there.
  tensor close_functional(boxed_op const& op, T const& y, boxed_args const& x, boxed_args const& plain) const {
    if (!y.defined()) return y;
    for (int k = 0; k < x.size(); ++k)
      if (y.is(plain[k])) return x[k];
    if (op.table->kind == op_kind::view && mine(x[0])) return view(op, y, x[0], plain[0]);
    for (int k = 0; k < x.size(); ++k) {
      if (!x[k].defined() || !y.shares_storage(plain[k])) continue;
      if (!mine(x[k])) return y;
      alias const& of = alias::of(x[k]);
      if (!(meta_of(plain[k]) == meta_of(y))) refuse_alias(op);
      return seen(y, of.memory, of.at, of.shown, x[k]);
    }
    return wrap(y);
  }

  /// An in-place operator: the functional one, whose result is committed to the memory (FN-5).
  friend tensor write_at(functionalize_interpreter const& in, boxed_op const& op, boxed_args const& x) {
    bool any = false;
    for (auto const& t : x) any = any || in.mine(t);
    if (!any) return op(x), x[0];
    detail::check_write_at_level(*in.self, op, x);
    alias& of = alias::of(x[0]);
    in.check_writable(op, of);
    boxed_args const plain = in.open_functional(x);
    T const y = in.written(op, plain, of.shown.strides);
    of.memory->commit(y, of.at, of.shown);
    x[0].bump_version();
    return x[0];
  }
  /// A write of a function, seen as one: the value that an operand has behind it.
  void replace(char const* who, tensor const& x, T const& y) const {
    alias& of = alias::of(x);
    if (!of.memory->is_writable()) refuse_write_of_capture(who);
    of.memory->commit(y, of.at, of.shown);
    x.bump_version();
  }
  /// Was a value, or one that shares its memory, written into since it was made?
  static bool is_written(tensor const& t) { return alias::of(t).memory->generation != 0; }

  static bool share_memory(tensor const& a, tensor const& b) { return alias::of(a).memory == alias::of(b).memory; }
  /// Was its memory made outside of the function of a higher-order operator that runs?
  static bool is_captured(tensor const& t) { return !alias::of(t).memory->is_writable(); }
  /// From now on its memory is not to be written into: `who` returned a view of it, or it in a view.
  static void refuse_writes(tensor const& t, char const* who) { alias::of(t).memory->returned_by = who; }

  /// Did autograd see any of that?
  static bool writes_recorded(tensor const& t) { return alias::of(t).memory->writes_recorded; }

  /// While a function of a higher-order operator runs, what was there before it is only read.
  class inner_function {
  public:
    explicit inner_function(functionalize_interpreter const& in) : run_(*in.run), before_(run_.writable_from) {
      run_.writable_from = run_.made;
    }
    inner_function(inner_function const&) = delete;
    inner_function& operator=(inner_function const&) = delete;
    ~inner_function() { run_.writable_from = before_; }

  private:
    detail::functional_run& run_;
    std::uint64_t before_;
  };

private:
  tensor seen(T const& y, std::shared_ptr<memory> m, detail::view_chain at, layout const& shown,
              tensor const& shares_with) const {
    tensor r = tensor::wrap(y, self->id, self->level, {}, {}, y.sizes());
    r.set_state(new alias(std::move(m), std::move(at), shown), shares_with);
    return r;
  }
  /// What strides cannot say of the memory that the program sees, however it lies by now, is a copy.
  tensor view(boxed_op const& op, T const& y, tensor const& x, tensor const& plain) const {
    alias const& of = alias::of(x);
    tensor const shadow = tensor::meta(x.sizes(), x.dtype()).with_layout(of.shown, false),
                 shown = op.table->meta(*op.at, boxed_args(shadow));
    if (!shown.shares_storage(shadow))
      return of.memory->check_read(of.at.get()), wrap(y.shares_storage(plain) ? T(clone(y)) : y);
    return seen(y, of.memory,
                std::make_shared<detail::view_step const>(
                    detail::view_step{of.at, op.table, *op.at, meta_of(plain), meta_of(y)}),
                shown.where(), x);
  }
  void check_writable(boxed_op const& op, alias const& of) const {
    if (!of.memory->is_writable()) refuse_write_of_capture(op.name());
    if (char const* const who = of.memory->returned_by)
      throw transform_error((std::string("varve: functionalize: ") + op.name() +
                             " writes into a view of an operand or of another result that " + who +
                             " returned; clone it there")
                                .c_str());
    for (detail::view_step const* s = of.at.get(); s; s = s->before.get())
      if (!detail::is_invertible_view(s->op->handle()))
        throw missing_rule((std::string("varve: functionalize: ") + op.name() + " writes into a view made by " +
                            s->op->name + ", whose inverse is not known; clone it first")
                               .c_str());
      else if (!of.memory->row_major && detail::repeats_elements(s->op->handle(), s->at, s->of, s->shows))
        throw missing_rule((std::string("varve: functionalize: ") + op.name() + " writes into a part of what " +
                            s->op->name + " repeats, of a value that is not row-major; clone it first")
                               .c_str());
  }
  /// What an in-place operator writes, in the dtype and shape of its operand, in memory that nobody else has.
  T written(boxed_op const& op, boxed_args const& x, dims const& strides) const {
    T const& into = x[0];
    op_table const* const f = op.table->functional;
    bool const copies = op.table->handle && op.table->handle() == &handle<copy__t>;
    if (!copies && !f)
      throw missing_rule(
          (std::string("varve: functionalize: ") + op.name() +
           " writes into its operand and has no functional form; say `using functional = ...` in its rules")
              .c_str());
    meta in[saved_values::most];
    for (int k = 0; k < x.size(); ++k) in[k] = meta_of(x[k]);
    detail::require_room(op.name(), in[0],
                         copies ? meta{in[0].type, in[1].sizes} : f->handle()->shape(*op.at, in, x.size()));
    detail::check_in_place(op.name(), into, strides);
    T y = copies ? static_cast<T const&>(x[1]) : T(boxed_op{f, op.at}(x));
    bool fresh = !copies;
    if (y.dtype() != into.dtype()) y = to(y, into.dtype()), fresh = true;
    if (!(y.sizes() == into.sizes())) y = expand(y, into.sizes()), fresh = false;
    return fresh ? y : T(clone(y));
  }
  [[noreturn]] VARVE_COLD static void refuse_write_of_capture(char const* who) {
    throw transform_error((std::string("varve: functionalize: ") + who +
                           ": the function of a higher-order operator writes into what it captures; pass it as an "
                           "operand and return the new value")
                              .c_str());
  }
  [[noreturn]] VARVE_COLD static void refuse_alias(boxed_op const& op) {
    throw transform_error((std::string("varve: functionalize: ") + op.name() +
                           " returned a value in the memory of an operand, but is no view (op_kind::view): its inverse "
                           "is not known (FN-25)")
                              .c_str());
  }
};

} // namespace varve
