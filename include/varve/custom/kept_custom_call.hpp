// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/custom/boxed_custom_function.hpp>
#include <varve/interpreter/mode_guard.hpp>
#include <varve/op/in_place.hpp>
#include <varve/trace/region.hpp>

/// @file
/// Custom functions in graphs created at run time. A node stores the function itself with all of its rules, and a
/// region with the operators of its `forward` for consumers that need values only (`values_only`). `interpret` calls
/// the function.
namespace varve {

template <>
inline constexpr op_handle hop_handle<custom_function_t> = [] {
  op_handle h{custom_function_t::op_name, op_kind::hop, -1, &detail::no_shape};
  return h;
}();

namespace detail {

/// The function that a node calls. An operand that the function writes into is passed as a copy, so that the call
/// writes into nothing. A separate node writes the result that is this operand back.
template <class T = tensor>
struct kept_custom_call {
  custom_function_ptr f;
  std::vector<bool> given, written, returned; // for operands, and for results: whether each is a tensor

  boxed_args operator()(boxed_args const& operands) const {
    if (f->has_combined_forward()) require_no_transform(f->name());
    boxed_args x;
    int k = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
      x.push_back(given[i] ? operands[k++] : T());
      if (written[i]) x[static_cast<int>(i)] = clone(static_cast<T const&>(x[static_cast<int>(i)]));
    }
    boxed_args const all = call_custom<>(f, x);
    boxed_args y;
    for (int r = 0; r < all.size(); ++r) {
      if (all[r].defined() != returned[static_cast<std::size_t>(r)])
        refuse::with<value_error>((std::string("varve: graph: ") + f->name() + ": result " + std::to_string(r) +
                                   " is a tensor in one call and none in another; it was not when it was traced")
                                      .c_str());
      if (all[r].defined()) y.push_back(all[r]);
    }
    return y;
  }
};

/// One trace of `forward` into a region.
template <class T = tensor>
struct traced_forward {
  trace_layer layer;
  boxed_args results{}, values{}; // including undefined ones; the real values of the defined ones
  std::vector<bool> written{};    // the operands that `forward` wrote into
  std::vector<int> result_of{};   // the result that an operand is, or -1

  explicit traced_forward(trace_layer& around, char const* name) : layer(around) { layer.custom = name; }
  /// Traces `forward`. Operands marked in `copied` are replaced by copies made in the region.
  void run(boxed_custom_function const& f, boxed_args const& x, std::vector<bool> const& copied) {
    boxed_args in;
    std::vector<dependent<std::uint32_t, T>> versions;
    for (auto const& t : x) {
      in.push_back(t.defined() ? layer.input(layer.outer->real_operand(t)) : t);
      versions.push_back(t.defined() ? layer.real(in[in.size() - 1]).writes() : 0);
    }
    values = layer.trace_function([&] {
      for (int i = 0; i < in.size(); ++i)
        if (copied[static_cast<std::size_t>(i)]) in[i] = clone(static_cast<T const&>(in[i]));
      results = f.forward(in);
      boxed_args y;
      for (auto const& t : results)
        if (t.defined()) y.push_back(t);
      return y;
    });
    layer.builder.close();
    for (int i = 0; i < in.size(); ++i) {
      bool const bare = in[i].defined() && !copied[static_cast<std::size_t>(i)];
      written.push_back(bare && layer.real(in[i]).writes() != versions[static_cast<std::size_t>(i)]);
      result_of.push_back(-1);
      for (int r = 0; r < results.size(); ++r)
        if (in[i].defined() && results[r].is(in[i])) result_of.back() = r;
    }
  }
};

/// A call of a custom function while a function is traced at run time.
template <class T = tensor>
class custom_call_tracer {
public:
  custom_call_tracer(trace_layer& around, custom_function_ptr f, boxed_args const& x)
      : around_(around), f_(std::move(f)), x_(x), mode_(this_thread_state.grad_mode) {
    for (auto const& t : x) given_.push_back(t.defined());
  }
  boxed_args run() {
    generator const before = default_generator;
    std::vector<bool> const none(given_.size(), false);
    std::vector<bool> written;
    { // the builder of the discarded region must be destroyed first
      traced_forward<T> body(around_, f_->name());
      body.run(*f_, x_, none);
      written = body.written;
      if (written == none) return write(body, none, before);
    }
    default_generator = before;
    traced_forward<T> body(around_, f_->name());
    body.run(*f_, x_, written);
    return write(body, written, before);
  }

private:
  boxed_args write(traced_forward<T>& body, std::vector<bool> const& written, generator const& before) {
    default_generator = before;
    std::vector<int> ids;
    for (auto const& t : x_)
      if (t.defined()) ids.push_back(around_.node_of(t));
    std::vector<bool> returned;
    for (auto const& t : body.results) returned.push_back(t.defined());
    int const node = around_.builder.emit_functions(&hop_handle<custom_function_t>, {}, ids.data(),
                                                    static_cast<int>(ids.size()), body.layer.builder);
    around_.builder.keep(
        node, {kept_custom_call<T>{f_, given_, written, returned}, f_->name(), static_cast<int>(ids.size())});
    around_.called(node, mode_);
    boxed_args y;
    int k = 0;
    for (int r = 0; r < body.results.size(); ++r) {
      if (!body.results[r].defined()) {
        y.push_back(tensor());
        continue;
      }
      tensor const& v = body.values[k];
      y.push_back(around_.wrap_result(v, around_.builder.result_of(node, k, {v.dtype(), v.sizes()})));
      ++k;
    }
    for (int i = 0; i < x_.size(); ++i) {
      if (!written[static_cast<std::size_t>(i)]) continue;
      int const r = body.result_of[static_cast<std::size_t>(i)];
      if (r < 0)
        refuse::argument_is_invalid(f_->name(), "its forward writes into an argument that it does not return; return "
                                                "it, marked dirty");
      around_.within([&] { copy_(x_[i], static_cast<T const&>(y[r])); });
      y[r] = x_[i];
    }
    return y;
  }

  trace_layer& around_;
  custom_function_ptr f_;
  boxed_args const& x_;
  bool mode_;
  std::vector<bool> given_;
};

/// Processes a call of a custom function in a trace that is on the stack.
template <class T>
boxed_args trace_custom(layer& l, custom_function_ptr const& f, boxed_args const& x) {
  auto& around = *static_cast<trace_layer*>(l.object);
  if (!around.records(x)) {
    boxed_args real;
    for (auto const& t : x) real.push_back(t.defined() ? around.real(t) : t);
    return around.beneath([&] { return call_custom<>(f, real); });
  }
  around.require_kept();
  if (around.is_mode() && is_user_mode_active())
    refuse::argument_is_invalid(f->name(), "a custom function is called under a mode in a function that is traced: the "
                                           "graph would keep the call, and not what the mode does to its operators; "
                                           "call it outside of the mode");
  return custom_call_tracer<T>(around, f, x).run();
}
} // namespace detail

} // namespace varve
