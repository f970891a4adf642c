// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/leaf.hpp>
#include <varve/transform/dynamic_scope.hpp>

namespace varve {

namespace detail {
/// Returns the edge from which a gradient of `t` starts or at which it arrives.
inline edge const& gradient_edge_of(tensor const& t) { return eager_history(fresh_at_level(t)); }
/// Chooses the one graph in which gradients are taken inside transforms: that of an active level of `grad` through
/// which the outputs are seen, or the eager one.
template <class Targets>
level_seen_again graph_level_of(Targets const& outputs) {
  level_seen_again r;
  if (!inside_transform()) return r;
  for (auto const& y : outputs) {
    if (!y.value.defined())
      refuse::with<transform_error>(
          "varve: autograd::grad: inside of a transform outputs are given as tensors, not as edges, "
          "which do not tell their level");
    if (y.value.is_wrapped() && !is_alive(this_thread_state.transforms.top, y.value))
      refuse::with<transform_error>("varve: autograd::grad: an output is a value of a transform that has ended");
    if (&y != &outputs[0] && y.value.layer() != r.layer)
      refuse::with<transform_error>(
          "varve: autograd::grad: the outputs are values of different transforms; ask for their "
          "gradients one after the other");
    r = {y.value.layer(), y.value.level()};
  }
  return r;
}

/// Sets the cotangents of the roots: the given ones, or ones for roots with a single element.
template <class Run, class Targets, class Gradients>
void seed_roots(Run& run, Targets const& roots, Gradients const& gradients, char const* who) {
  using T = typename Gradients::value_type;
  if (!gradients.empty() && gradients.size() != roots.size())
    refuse::with<value_error>(
        (std::string("varve: ") + who + ": as many gradients as roots are needed, or none").c_str());
  for (std::size_t k = 0; k < roots.size(); ++k) {
    auto const& root = roots[k];
    T const& y = root.value;
    T g = gradients.empty() ? T() : gradients[k];
    if (!root.at && y.defined() && y.has_history())
      refuse::with<transform_error>(
          (std::string("varve: ") + who +
           ": an output was recorded below the transform through which it is seen, mapped or with a "
           "tangent; use grad or vjp, or ask outside of the transform")
              .c_str());
    if (!root.at)
      refuse_autograd(who, "the tensor does not require grad and has no history; call requires_grad_ on what it is "
                           "made of, outside of no_grad");
    if (!g.defined()) {
      if (!y.defined() || numel(y.sizes()) != 1)
        refuse_autograd(who, ("a gradient is made up only for a scalar, not for " +
                              (y.defined() ? "shape " + to_string(y.sizes()) : std::string("an edge")) + "; give one")
                                 .c_str());
      if (is_complex(y.dtype()))
        refuse_autograd(who, "a gradient is made up only for a real scalar, not for a complex one; give one");
      g = detail::constant_ones(y);
    } else if (y.defined()) {
      if (!(g.sizes() == y.sizes()))
        refuse::shapes_do_not_match((std::string(who) + " (mismatch in shape of gradient and value)").c_str(),
                                    g.sizes(), y.sizes());
      if (g.dtype() != y.dtype())
        refuse::with<dtype_error>((std::string("varve: ") + who + ": a gradient of " + name(g.dtype()) +
                                   " was given for a value of " + name(y.dtype()))
                                      .c_str());
    }
    run.seed(root.at, static_cast<T&&>(g));
  }
}
inline void refuse_backward_inside_transform(char const* who) {
  if (!inside_transform()) return;
  bool traced = false;
  for (layer const* l = this_thread_state.transforms.top; l; l = l->below) traced = traced || l->kind->is_trace();
  refuse::with<transform_error>(
      (std::string("varve: ") + who + " was called inside of a " +
       (traced ? "function that is traced; use grad, vjp or jvp there, and return the gradient"
               : "transform; use grad, vjp or jvp there"))
          .c_str());
}
template <class T, class Targets, class Options, class Unused>
std::vector<T> batched_grad(Targets const& outputs, Targets const& inputs, std::vector<T> const& grad_outputs,
                            Options o, Unused allow);
} // namespace detail

namespace autograd {

/// A place where a gradient starts or is requested: a tensor, or an edge of the graph without its tensor.
struct target {
  edge at;
  tensor value;
  target(tensor const& t) : value(detail::where_recorded(t)) { // NOLINT: a tensor is a target
    if (value.has_history()) at = detail::gradient_edge_of(value);
  }
  target(gradient_edge const& e) : at(e.node.get(), static_cast<std::uint32_t>(e.output_nr)) {} // NOLINT
};
/// Returns the edge of a tensor that requires grad (`torch.autograd.graph.get_gradient_edge`); throws `autograd_error`
/// for other tensors.
inline gradient_edge get_gradient_edge(tensor const& t) {
  if (!t.has_history()) detail::refuse_autograd("get_gradient_edge", "the tensor does not require grad");
  edge const& e = detail::gradient_edge_of(t);
  return {node(e.to()), static_cast<int>(e.nr())};
}

/// Options of `backward` and `grad`.
struct options {
  /// True to keep saved values, so that the graph can be run again.
  bool retain_graph = false;
  /// True to record the backward pass itself, for derivatives of higher order.
  bool create_graph = false;
  /// True if the gradients of outputs have a leading batch dimension, over which the run is mapped. Only for `grad`.
  bool is_grads_batched = false;
};
/// The result of `grad` for inputs that the outputs do not depend on. Zeros require grad, as in PyTorch.
enum class unused { error, undefined, zeros };

} // namespace autograd

namespace detail {
/// Implements `autograd::backward` for lists of any kind.
template <class T, class Targets, class Gradients, class Inputs>
void run_backward(Targets const& roots, Gradients const& gradients, autograd::options o, Inputs const& inputs) {
  refuse_backward_inside_transform("backward");
  backward_run<T> run(o.retain_graph || o.create_graph);
  set_grad_enabled const recorded(o.create_graph);
  seed_roots(run, roots, gradients, "backward");
  for (auto const& x : inputs) {
    if (!x.has_history()) refuse_autograd("backward", "one of the inputs does not require grad");
    run.capture(gradient_edge_of(x));
  }
  run.call_hooks_of_captured();
  run.run();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    T const& g = run.captured(static_cast<int>(k));
    auto* const leaf = leaf_of(inputs[k]);
    edge const e = gradient_edge_of(inputs[k]);
    bool again = false;
    for (std::size_t i = 0; i < k; ++i) {
      edge const other = gradient_edge_of(inputs[i]);
      again = again || (other.to() == e.to() && other.nr() == e.nr());
    }
    if (!g.defined() || again) continue;
    if (!leaf) {
      node_extra<T>::of(*e.to()).collect(e.nr(), g);
      continue;
    }
    boxed_args in(g), out;
    if (leaf->extra) leaf->extra->before(*leaf, in);
    leaf->type->backward(*leaf, in, nullptr);
    if (leaf->extra) leaf->extra->after(*leaf, out, in);
  }
}
} // namespace detail

namespace autograd {

/// Adds the gradients of `roots` to the leaves that they were computed from: `torch.autograd.backward`. `gradients`
/// contains a weight for each root. It may be empty, or have undefined entries, for roots with a single element. With
/// `inputs`, adds gradients only to those, which need not be leaves. Cost: a small multiple of the recorded operators,
/// for graphs of any depth. Throws `autograd_error` if a root has no history, the graph was freed, or a saved value was
/// overwritten. Some leaves may already have received their gradient then.
template <class T = tensor>
void backward(std::vector<target> const& roots, std::vector<T> const& gradients = {}, options o = {},
              std::vector<T> const& inputs = {});

/// Returns the gradients of `outputs`, weighted by `grad_outputs`, with respect to `inputs`, which need not be leaves:
/// `torch.autograd.grad`. It changes no leaf. Throws `autograd_error` for an input that the outputs do not depend on,
/// unless `allow` says otherwise (`allow_unused`, `materialize_grads`). Inside `grad` and `vjp` it differentiates
/// values of that transform; with `create_graph` the result is differentiable too. Higher-order operators and custom
/// functions in between are refused there (`transform_error`).
template <class T = tensor>
std::vector<T> grad(std::vector<target> const& outputs, std::vector<target> const& inputs,
                    std::vector<T> const& grad_outputs = {}, options o = {}, unused allow = unused::error);
} // namespace autograd

} // namespace varve

#if VARVE_DEFINES
namespace varve::autograd {
template <class T>
void backward(std::vector<target> const& roots, std::vector<T> const& gradients, options o,
              std::vector<T> const& inputs) {
  detail::run_backward<T>(roots, gradients, o, inputs);
}
template <class T>
std::vector<T> grad(std::vector<target> const& outputs, std::vector<target> const& inputs,
                    std::vector<T> const& grad_outputs, options o, unused allow) {
  detail::level_seen_again const level = detail::graph_level_of(outputs);
  if (o.is_grads_batched) return detail::batched_grad<T>(outputs, inputs, grad_outputs, o, allow);
  detail::backward_run<T> run(o.retain_graph || o.create_graph);
  detail::this_thread_sees_again = level;
  set_grad_enabled const recorded(o.create_graph);
  detail::seed_roots(run, outputs, grad_outputs, "autograd::grad");
  for (auto const& x : inputs) {
    if (!x.at) detail::refuse_autograd("autograd::grad", "one of the inputs does not require grad");
    run.capture(x.at);
  }
  run.run();
  std::vector<T> r;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    T g = run.captured(static_cast<int>(k));
    if (!g.defined() && allow == unused::error)
      detail::refuse_autograd("autograd::grad",
                              ("input " + std::to_string(k) +
                               " plays no part in the outputs; allow it with unused::undefined or unused::zeros")
                                  .c_str());
    if (!g.defined() && allow == unused::zeros) {
      if (!inputs[k].value.defined())
        detail::refuse_autograd("autograd::grad", "an edge has no shape to make zeros of; give its tensor");
      g = T(clone(T(detail::constant_zeros(T(inputs[k].value.detach())))));
      if (!inside_transform()) g.requires_grad_();
    }
    r.push_back(static_cast<T&&>(g));
  }
  return r;
}
} // namespace varve::autograd

namespace varve {
/// Runs the backward pass once for each slice of the cotangents, as `vmap` does.
template <class T, class Targets, class Options, class Unused>
std::vector<T> detail::batched_grad(Targets const& outputs, Targets const& inputs, std::vector<T> const& grad_outputs,
                                    Options o, Unused allow) {
  if (grad_outputs.empty() || !grad_outputs[0].defined() || grad_outputs[0].dim() == 0)
    refuse::with<value_error>(
        "varve: autograd::grad: batched gradients of the outputs must be given, with the batch in front");
  extent const n = grad_outputs[0].sizes()[0];
  dynamic_batch_scope<> scope(n, random_policy::error);
  std::vector<T> mapped;
  for (auto const& g : grad_outputs) {
    if (!g.defined() || g.dim() == 0 || g.sizes()[0] != n)
      refuse::with<value_error>(
          "varve: autograd::grad: the gradients of outputs must all be given, with batches of one size");
    mapped.push_back(scope.map(g));
  }
  level_seen_again const level = graph_level_of(outputs);
  backward_run<T> run(o.retain_graph || o.create_graph);
  this_thread_sees_again = level;
  set_grad_enabled const recorded(o.create_graph);
  scope.run([&] {
    seed_roots(run, outputs, mapped, "autograd::grad");
    for (auto const& x : inputs) run.capture(x.at);
    run.run();
    return 0;
  });
  std::vector<T> r;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    T const g = run.captured(static_cast<int>(k));
    if (!g.defined() && allow == Unused::error)
      refuse_autograd("autograd::grad",
                      ("input " + std::to_string(k) +
                       " plays no part in the outputs; allow it with unused::undefined or unused::zeros")
                          .c_str());
    if (g.defined())
      r.push_back(scope.mapped(g) ? T(scope.unmapped(g)) : T(expand(g, [&] {
        dims s = g.sizes();
        return s.insert(0, n);
      }())));
    else if (allow == Unused::undefined) r.push_back(T());
    else if (!inputs[k].value.defined())
      refuse_autograd("autograd::grad", "an edge has no shape to make zeros of; give its tensor");
    else
      r.push_back(detail::constant_zeros(T(expand(T(inputs[k].value.detach()), [&] {
        dims s = inputs[k].value.sizes();
        return s.insert(0, n);
      }()))));
  }
  return r;
}

template <class T>
void tensor::backward(T const& gradient, bool retain_graph, bool create_graph) const {
  detail::run_backward<T>(std::array<autograd::target, 1>{*this}, std::array<T, 1>{gradient},
                          {retain_graph, create_graph}, std::array<T, 0>{});
}
VARVE_LIBRARY tensor tensor::grad() const {
  if (!defined()) return {};
  edge const& e = detail::where_recorded(*this).history();
  if (auto* const leaf = detail::leaf_of(detail::where_recorded(*this))) return leaf->get();
  if (e && e.to()->extra)
    if (tensor const* const g = e.to()->extra->retained_at(e.nr())) return *g;
  return {};
}
VARVE_LIBRARY void tensor::set_grad(tensor const& g) const {
  auto* const leaf = detail::leaf_of(detail::where_recorded(*this));
  if (!leaf) detail::refuse_autograd("set_grad", "only leaves that require grad keep a gradient");
  if (g.defined() && !(g.sizes() == sizes())) refuse::shapes_do_not_match("set_grad", g.sizes(), sizes());
  if (g.defined() && g.dtype() != dtype())
    refuse::with<dtype_error>(
        (std::string("varve: set_grad: a gradient of ") + name(g.dtype()) + " for a tensor of " + name(dtype()))
            .c_str());
  leaf->set(g);
}
} // namespace varve
#endif
