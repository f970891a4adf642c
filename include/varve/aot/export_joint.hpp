// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/aot/joint_graph.hpp>
#include <varve/pass/optimize.hpp>

namespace varve {

/// The meaning of the arguments and results of an exported joint graph.
struct joint_signature {
  /// The number of arguments of the function, and of captured tensors, which are the inputs after them.
  int arguments = 0, captured = 0;
  /// Results: the new values of these arguments (`written`), then what the function returned, one of which is the loss,
  /// then gradients of these arguments (`gradients`).
  std::vector<int> written{};
  int outputs = 0;
  int loss = -1;
  std::vector<int> gradients{};
};
/// The result of `aot_export_joint`: the joint graph and the meaning of its inputs and outputs.
struct exported_joint {
  graph joint;
  joint_signature signature;
  boxed_args captured{};
};

namespace detail {
/// Implements `aot_export_joint` for an erased function.
template <class T = tensor>
exported_joint export_joint(boxed_function_ref f, boxed_args const& x, int loss);
} // namespace detail

/// A function object that exports one graph for a function and the gradients of one of its results, a scalar:
/// `aot_export_joint(f, loss)(x...)`. Gradients are taken with respect to the arguments and captured tensors that
/// require one. Results: the new values of written arguments, what the function returned, then the gradients. `loss` -1
/// exports for inference, without gradients. Throws `autograd_error` for written arguments that require gradients or
/// share memory, and for results other than the loss that require a gradient. The message names the argument or result.
template <class F>
class aot_export_joint {
public:
  explicit aot_export_joint(F f, int loss = -1) : f_(std::move(f)), loss_(loss) {}

  template <class... X>
  exported_joint operator()(X const&... x) const {
    detail::boxed_call_with<X...> const call(&f_, &detail::run_boxed<F, X...>, x...);
    return detail::export_joint<>(call, call.arguments, loss_);
  }

private:
  F f_;
  int loss_;
};

#if VARVE_DEFINES_CAPTURE
namespace detail {
/// Replaces the only tangent by 1, for the gradient of the loss itself.
template <class G>
G with_unit_tangent(G const& g) {
  rewriter w(g);
  int const last = g.regions[0].inputs - 1;
  G r = w.run(
      [&](int n) {
        node const& nd = g.nodes[n];
        if (n >= g.regions[0].node_count || nd.op->kind != op_kind::placeholder || static_cast<int>(nd.value) != last)
          return w.copy(nd);
        node one;
        one.op = &constant_handle, one.out = {nd.out.type, {}}, one.value = 1;
        return w.append(one, nullptr);
      },
      [] {});
  r.regions[0].inputs = last;
  return r;
}
inline void require_exportable(joint_graph const& g, boxed_args const& in, int loss) {
  auto const refuse = [](std::string const& what) {
    refuse::with<autograd_error>(("varve: aot_export: " + what).c_str());
  };
  for (int k = 0; k < in.size(); ++k) {
    aot_input const& i = g.inputs[static_cast<std::size_t>(k)];
    auto const which = "argument " + std::to_string(k);
    if (i.is_written && i.requires_grad) refuse(which + " requires a gradient and is written into");
    if (i.reshaped || i.set_to_input >= 0 || i.set_to_result >= 0)
      refuse(which + " is given another shape or other memory: metadata mutation of an input");
    if (i.is_written_backward) refuse(which + " is written into by a backward pass");
    for (int j = 0; j < in.size(); ++j)
      if (i.is_written && j != k && in[j].shares_storage(in[k]))
        refuse(which + " is written into and shares memory with argument " + std::to_string(j));
  }
  for (std::size_t k = 0; k < g.outputs.size(); ++k)
    if (static_cast<int>(k) != loss && loss >= 0 && g.outputs[k].requires_grad)
      refuse("result " + std::to_string(k) + " requires a gradient and is not the loss; detach it");
  if (loss >= 0 &&
      (loss >= static_cast<int>(g.outputs.size()) || !g.outputs[static_cast<std::size_t>(loss)].requires_grad))
    refuse("result " + std::to_string(loss) + " is the loss, and does not require a gradient");
}
/// Returns the graph if every result of the function is one of its results; refuses arguments and views.
inline graph with_all_outputs(joint_graph const& g) {
  for (aot_output const& o : g.outputs)
    if (o.what != aot_output::kind::value)
      refuse::with<autograd_error>("varve: aot_export: a result is undefined, an argument, or a view of an argument or "
                                   "of another result; clone it");
  return g.joint;
}
template <class T>
exported_joint export_joint(boxed_function_ref f, boxed_args const& x, int loss) {
  set_grad_enabled const needed(loss >= 0);
  aot_state state;
  state.differentiated = loss >= 0;
  joint_graph const g = trace_ahead_of_time<on_fake_values<dependent<fake_mode, T>>>(f, x, {}, state);
  require_exportable(g, x, loss);
  exported_joint r;
  r.captured = g.captured;
  r.signature.arguments = static_cast<int>(g.inputs.size()), r.signature.captured = g.captured.size();
  for (std::size_t k = 0; k < g.inputs.size(); ++k)
    if (g.inputs[k].is_written) r.signature.written.push_back(static_cast<int>(k));
  r.signature.outputs = static_cast<int>(g.outputs.size()), r.signature.loss = loss;
  r.signature.gradients = g.differentiated;
  using G = dependent<graph, T>;
  G const joint = optimize(with_all_outputs(g), purpose::values);
  r.joint = loss < 0 ? joint : with_unit_tangent(joint);
  if (loss >= 0 && g.tangents.size() != 1)
    refuse::with<autograd_error>("varve: aot_export: an argument that is written has a gradient");
  return r;
}
#if VARVE_COMPILED // for the library
template exported_joint export_joint<tensor>(boxed_function_ref, boxed_args const&, int);
#endif
} // namespace detail
#endif

} // namespace varve
