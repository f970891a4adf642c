// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/number_text.hpp>
#include <varve/export/export_program.hpp>
#include <varve/op/randn.hpp>

namespace varve {

/// A draft of a program, and a report of its problems.
struct drafted_program {
  exported_program program;
  draft_report report;
};

namespace detail {
/// Implements `draft_export` after type erasure of the function.
template <class T = tensor>
drafted_program draft_call(boxed_call const& call, export_options const& how);
} // namespace detail

/// Exports a function like `export_program`, but reports problems with data and sizes instead of throwing:
/// `draft_export(f, options)(x...)`. The program is made nevertheless.
///
/// Where C++ decides by data, the draft decides as for the example, and checks in each run that the data agree
/// (`shape_error`). Sizes declared as free are restricted as the function requires. An operator that no graph can call
/// is reported, and such a draft cannot be run (`draft_report::complete`).
///
/// To find the decisions, the function is also computed on copies of the examples during the trace. Results of
/// higher-order operators are not available there; decisions by them throw `data_dependent_error`. Other errors are
/// those of `export_program`.
template <class F>
class draft_export {
public:
  explicit draft_export(F f, export_options o = {}) : export_(std::move(f), std::move(o)) {}

  template <class... X>
  drafted_program operator()(X const&... x) const {
    std::vector<tensor> own;
    detail::boxed_call_with<X...> const call(&export_.f_, &detail::run_boxed<F, X...>, x...);
    return detail::draft_call<>(call, export_.options(own));
  }

private:
  export_program<F> export_;
};

#if VARVE_DEFINES_CAPTURE
namespace detail {
/// Computes values beside a trace: modes, transforms, recorders and random numbers are not affected.
class beside_the_trace {
  disable_modes modes_{};
  emptied transforms_{this_thread_state.transforms};
  key_guard keys_{this_thread_state.included, {}};
  no_grad values_{};
  literals_as_they_are literals_{};
  generator_guard numbers_{default_generator};
};
/// Records a check of a decision so that only the trace sees it.
class seen_by_the_trace {
  emptied functions_{this_thread_state.functions}, pre_dispatch_{this_thread_state.pre_dispatch},
      modes_{this_thread_state.modes}, transforms_{this_thread_state.transforms},
      functional_{this_thread_state.infra[static_cast<int>(infra_mode::functional)]};
  key_guard keys_{this_thread_state.included, {}};
};

/// The values of an export, together with the values that the function computes for the examples. Decisions by data
/// follow the examples, and are checked in each run.
template <class Mode>
class on_drafted_values final : public on_exported_values<Mode>, value_follower {
  using T = dependent<tensor, Mode>;
  using base = on_exported_values<Mode>;
  using kind = draft_finding::kind;

public:
  using options = typename base::options;
  explicit on_drafted_values(options const& how) : base(how, this) {}
  static void missing_node(char const* op) {
    static_cast<on_drafted_values&>(base::here())
        .found()
        .add({kind::missing_rule, std::string(op) + " is no operator of graphs",
              "its result is zeros, and the draft no program: give the operator rules of its own (rules<>)"});
  }

private:
  void made(tensor const& of, tensor const& fake) override {
    tensor const t = is_fake(of) ? met(of) : of;
    layout const l = fake.where();
    if (!t.defined() || !t.is_contiguous() || !known_equal(l.offset, 0)) return; // the copy would have another layout
    beside_the_trace const here;
    fake_memory::of_tensor(fake).met = clone(static_cast<T const&>(t));
  }
  void ran(boxed_op const& op, boxed_args const& x, tensor const& y) override {
    boxed_args in;
    bool all = true;
    for (auto const& t : x) {
      in.push_back(is_fake(t) ? met(t) : t);
      all = all && in[in.size() - 1].defined() == t.defined();
    }
    tensor& to = fake_memory::of_tensor(y).met;
    attributes at = *op.at;
    all = all && in_numbers(at);
    if (!all) return void(to = tensor());
    beside_the_trace const here;
    tensor const v = boxed_op{op.table, &at}(in);
    if (op.table->kind != op_kind::mutation) to = v.is_contiguous() ? v : clone(static_cast<T const&>(v));
  }
  tensor metadata(boxed_op const& op, boxed_args const& x, error const& refused) override {
    boxed_args in;
    for (auto const& t : x) in.push_back(is_fake(t) ? met(t) : t);
    attributes at = *op.at;
    bool all = in_numbers(at);
    for (int k = 0; k < x.size(); ++k) all = all && in[k].defined() == x[k].defined();
    if (!all) refuse::with<missing_rule>(refused.what());
    beside_the_trace const here;
    tensor const y = boxed_op{op.table, &at}(in);
    this->found().add({kind::missing_rule, refused.what(), "its result has the sizes that it has for the example"});
    return y.as_meta();
  }
  tensor asked(tensor const& fake) override {
    tensor const v = met(fake);
    if (!v.defined() || v.numel() != 1) return {};
    std::string const value = on_stored_dtype(v.dtype(), "item", [&]<class E>() {
      return number_text(static_cast<double>(*static_cast<E const*>(v.raw())));
    });
    this->found().add({kind::data_dependent,
                       "a number in a tensor (" + std::string(name(v.dtype())) + ") is asked for, by which C++ decides",
                       "it is taken for " + value + ", which is checked in each run"});
    seen_by_the_trace const here;
    if (!is_floating(v.dtype())) {
      shape_environment::check(relation::equal, item(static_cast<T const&>(fake)), v.template item<index_t>());
      return v;
    }
    T const x = fake;
    bool const number = v.template item<double>() == v.template item<double>();
    auto const same = number ? eq(x, T::from_number(v.template item<double>())) : ne(x, x);
    shape_environment::check(relation::equal, item(T(same)), 1);
    return v;
  }
  void named(tensor const& fake, extent symbol) override {
    if (tensor const v = met(fake); v.defined() && v.numel() == 1)
      this->meet(symbol, static_cast<index_t>(v.template item<index_t>()));
  }
  bool decide(relation is, extent a, extent b) override {
    constexpr char const* signs[] = {" == ", " != ", " < ", " <= "};
    auto const text_of_guard = [&](size_guard const& g) {
      return text_of(g.left) + signs[static_cast<int>(g.is)] + text_of(g.right);
    };
    auto const known = [&] {
      bool const yes = base::decide(is, a, b), data = this->depends_on_data(a) || this->depends_on_data(b);
      if (data && this->is_met(a) && this->is_met(b) && yes != holds(is, this->number_met(a), this->number_met(b)))
        this->found().add({kind::data_dependent,
                           "whether " + text_of_guard({is, a, b}) +
                               " is not so for the example, of which data tell a "
                               "size of 0 or 1",
                           "the program is the one for sizes of 2 and more, which is right for others where no C++ of "
                           "yours has decided by them"});
      return yes;
    };
    return attempt<data_dependent_error>(known, [&](error const& refused) {
      require_met(a, b, refused);
      bool const yes = holds(is, this->number_met(a), this->number_met(b));
      size_guard const g = yes ? size_guard{is, a, b} : shape_environment::opposite(is, a, b);
      this->found().add({kind::data_dependent, refused.what(),
                         "it is as for the example: " + text_of_guard(g) + ", which is checked in each run"});
      shape_environment::check(g.is, g.left, g.right);
      return yes;
    });
  }
  index_t specialize(extent a) override {
    return attempt<data_dependent_error>(
        [&] { return base::specialize(a); },
        [&](error const& refused) {
          require_met(a, 0, refused);
          index_t const n = this->number_met(a);
          this->found().add({kind::data_dependent, refused.what(),
                             "it is " + std::to_string(n) + ", as for the example, which is checked in each run"});
          shape_environment::check(relation::equal, a, n);
          return n;
        });
  }
  std::string text_of(extent e) const { return e.is_number() ? std::to_string(e.number()) : this->text(e); }
  void require_met(extent a, extent b, error const& refused) const {
    if (!this->is_met(a) || !this->is_met(b))
      refuse::with<data_dependent_error>(
          (std::string(refused.what()) + " (nor is it known of the example: it comes of an operator with functions)")
              .c_str());
  }
  /// Replaces symbolic attributes by their values for the example. Returns false if these are not known.
  bool in_numbers(attributes& at) const {
    bool known = true;
    for (int k = 0; k < at.count; ++k)
      for (int d = 0; d < at.fact[k].n; ++d)
        if (known = known && this->is_met(at.fact[k][d]); known) at.fact[k][d] = number_of(at.fact[k][d]);
    return known;
  }
  extent number_of(extent e) const { return e.is_number() ? e : extent(this->number_met(e)); }
  /// Returns the example's value of a fake tensor, or an undefined tensor if it is not known.
  tensor met(tensor const& fake) const {
    tensor const& all = fake_memory::of_tensor(fake).met;
    if (!all.defined()) return {};
    layout l = fake.where();
    extent last = 0;
    bool empty = false, known = this->is_met(l.offset);
    for (int k = 0; k < l.sizes.n; ++k) known = known && this->is_met(l.sizes[k]) && this->is_met(l.strides[k]);
    if (!known) return {};
    last = l.offset = number_of(l.offset);
    for (int k = 0; k < l.sizes.n; ++k) {
      l.sizes[k] = number_of(l.sizes[k]), l.strides[k] = number_of(l.strides[k]);
      empty = empty || known_equal(l.sizes[k], 0);
      last += (l.sizes[k] - 1) * l.strides[k];
    }
    if (!empty && !(last < all.numel())) return {};
    return all.with_layout(l, false);
  }
};
template <class T>
drafted_program draft_call(boxed_call const& call, export_options const& how) {
  drafted_program r;
  r.program = program_exporter<T>(how).template made<on_drafted_values<dependent<fake_mode, T>>>(call, &r.report);
  if (!r.report.complete())
    r.program.refused = "it is a draft that calls operators which no graph can call; see its report";
  return r;
}
#if VARVE_COMPILED // for the library
template drafted_program draft_call<tensor>(boxed_call const&, export_options const&);
#endif
} // namespace detail
#endif

} // namespace varve

#pragma GCC diagnostic pop
