// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/dynamic_level.hpp>
#include <varve/interpreter/engine.hpp>
#include <varve/interpreter/write_level.hpp>
#include <varve/transform/closure.hpp>

namespace varve {

namespace detail {
/// A layer that runs interpreter `I` on boxed calls, with the same `process` that static values use.
template <class I>
struct interpreter_layer : layer {
  I interpreter{};
  interpreter_layer(layer_kind const& k, layer_stack& stack);
  interpreter_layer(interpreter_layer const&) = delete;
  interpreter_layer& operator=(interpreter_layer const&) = delete;

  /// The `layer_kind::process` of the kinds below.
  static tensor process(layer& l, boxed_op const& op, boxed_args const& x);
};
#if VARVE_DEFINES
template <class I>
interpreter_layer<I>::interpreter_layer(layer_kind const& k, layer_stack& stack) : layer(k) {
  interpreter.self = this;
  object = static_cast<dynamic_level*>(&interpreter);
  interpreter.refresh = refresh_of<I>;
  pushed::name(*this, stack);
}
template <class I>
tensor interpreter_layer<I>::process(layer& l, boxed_op const& op, boxed_args const& x) {
  auto const& in = static_cast<interpreter_layer&>(l).interpreter;
  if (op.table->kind == op_kind::mutation) [[unlikely]]
    return write_at(in, op, x);
  tensor y = in.process(op, x);
  if (!in.refresh) return y;
  if (x.size() > 0) in.link(op, y, x[0], l.grad_mode);
  in.make_own(y, x);
  return y;
}
#endif

/// The layer kinds of the transforms on tensors. They are templates so that including the header alone instantiates no
/// operator.
template <class On>
inline constexpr layer_kind grad_kind{.name = "grad",
                                      .role = layer_role::grad,
                                      .keys = transform_keys(transform_type::grad),
                                      .process =
                                          &interpreter_layer<grad_interpreter<dependent<dynamic_level, On>>>::process,
                                      .record = &dynamic_level::record_done<dependent<tensor, On>>,
                                      .records = true};
template <class On>
inline constexpr layer_kind jvp_kind{.name = "jvp",
                                     .role = layer_role::jvp,
                                     .keys = transform_keys(transform_type::jvp),
                                     .process =
                                         &interpreter_layer<jvp_interpreter<dependent<dynamic_level, On>>>::process};
template <class On>
inline constexpr layer_kind vmap_kind{
    .name = "vmap",
    .role = layer_role::vmap,
    .keys = transform_keys(transform_type::vmap),
    .process = &interpreter_layer<vmap_interpreter<dependent<batch_level, On>, dims>>::process};

/// Adds the tensors of a tree to those that the function receives at this level.
template <class Lv, class T>
void give_to(Lv& level, T const& t) {
  tree_for_each(
      [&]<class V>(V const& v) {
        if constexpr (std::is_same_v<V, tensor>)
          if (v.defined()) level.given.push_back(v);
      },
      t);
}
inline void require_floating(tensor const& t, char const* transform, bool or_complex) {
  if (is_floating(t.dtype()) || (or_complex && is_complex(t.dtype()))) return;
  std::string what(transform);
  what += " of a value that is not floating"; // g++ 12 warns about operator +
  refuse::dtype_is_not_supported(what.c_str(), name(t.dtype()));
}
} // namespace detail

namespace detail {
/// The node in which the gradient of a transform's argument arrives.
struct argument_node : grad_node {
  tensor gradient;
  static grad_node_type const type_;
  argument_node() : grad_node(&type_) { sequence = ~std::uint64_t{0}; }
  static boxed_args backward(grad_node& n, boxed_args& g, bool const*) {
    static_cast<argument_node&>(n).gradient = g[0];
    return {};
  }
  static void destroy(grad_node* n) {
    if (n->extra) drop_extra(n->extra);
    delete static_cast<argument_node*>(n);
  }
};
inline constexpr grad_node_type argument_node::type_{
    &argument_node::backward, [](grad_node&) {}, &argument_node::destroy,
    [](grad_node const&, char* out) { std::strcpy(out, "Argument"); }, true};
} // namespace detail

/// One run of reverse mode on tensors: a layer on the thread's stack while the function runs, and the graph it records.
/// The static counterpart is `static_reverse_scope`. This class is a template, like the scopes below, only so that
/// including the header alone instantiates no operator.
template <class On = void>
class dynamic_reverse_scope {
public:
  dynamic_reverse_scope() : layer_(detail::grad_kind<On>, this_thread_state.transforms) {
    if (this_thread_state.saved_hooks && !this_thread_state.saved_hooks->at_level)
      refuse::with<transform_error>(
          "varve: grad, vjp and jacrev do not support saved tensor hooks; take the transform out of "
          "their scope");
    layer_.outer_grad_mode = this_thread_state.grad_mode;
  }

  template <class T>
  auto track(T const& t) {
    return tree_map(
        [&](auto const& v) {
          if constexpr (value<std::remove_cvref_t<decltype(v)>>) {
            tensor const x = detail::as_tensor(detail::plain(v));
            detail::require_floating(x, "grad", true);
            return tensor::wrap(x, layer_.id, layer_.level, {}, detail::edge_to(new detail::argument_node), x.sizes());
          } else {
            return v;
          }
        },
        t);
  }
  /// Registers values that the function receives without being differentiated: other arguments and declared captures.
  template <class T>
  void give(T const& t) {
    detail::give_to(layer_.interpreter, t);
  }
  template <class Body>
  auto run(Body const& body) {
    struct hooks_of_a_level_below {
      saved_hooks_scope* const before = this_thread_state.saved_hooks;
      hooks_of_a_level_below() { this_thread_state.saved_hooks = nullptr; }
      ~hooks_of_a_level_below() { this_thread_state.saved_hooks = before; }
    } const off;
    pushed const on(this_thread_state.transforms, layer_);
    set_grad_enabled const recorded(true);
    return body();
  }
  template <class Y>
  auto primal(Y const& t) const {
    return tree_map(
        [&](auto const& y) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(y)>, tensor>)
            return mine(y) ? tensor(y.inner()) : y;
          else return y;
        },
        t);
  }
  template <class Y>
  void backward_from_scalar(Y const& y) {
    static_assert(value<Y>, "varve: grad: the function must return one scalar value");
    if constexpr (std::is_same_v<Y, tensor>) {
      if (y.dim() != 0) refuse::grad_of_a_function_that_does_not_return_a_scalar(y.sizes());
      detail::require_floating(y, "grad of a function", false);
      if (!mine(y) || !layer_.interpreter.fresh(y).history()) return;
      detail::backward_run<dependent<tensor, Y>> pass(false);
      pass.seed(y.history(), detail::constant_ones(y.inner()));
      pass.run();
    }
  }
  template <class Y, class G>
  void backward(Y const& t, G const& g) {
    detail::backward_run<dependent<tensor, Y>> pass(true);
    tree_map(
        [&](auto const& y, auto const& c) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(y)>, tensor>) {
            tensor const cotangent = detail::as_tensor(detail::plain(c));
            if (!(cotangent.sizes() == y.sizes()))
              refuse::shapes_do_not_match("vjp (cotangent and result)", cotangent.sizes(), y.sizes());
            if (mine(y) && layer_.interpreter.fresh(y).history()) pass.seed(y.history(), cotangent);
          }
          return y;
        },
        t, g);
    pass.run();
  }
  /// Returns the collected cotangents of a tracked tree, with zeros where none arrived. Moves them out of the scope.
  template <class T>
  auto gradient(T const& t) const {
    return tree_map(
        [&](auto const& v) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) {
            tensor const c = static_cast<tensor&&>(static_cast<detail::argument_node*>(v.history().to())->gradient);
            return c.defined() ? c : tensor(detail::constant_zeros(v.inner()));
          } else {
            return none;
          }
        },
        t);
  }

private:
  bool mine(tensor const& y) const { return layer_.interpreter.mine(y); }
  detail::interpreter_layer<grad_interpreter<dynamic_level>> layer_;
};

/// One run of forward mode on tensors.
template <class On = void>
class dynamic_forward_scope {
public:
  dynamic_forward_scope() : layer_(detail::jvp_kind<On>, this_thread_state.transforms) {}
  template <class P, class T>
  auto attach(P const& p, T const& t) const {
    return tree_map(
        [&](auto const& v, auto const& d) {
          auto const x = boxed(v);
          auto const dx = boxed(d);
          detail::require_floating(x, "jvp", true);
          if (!(x.sizes() == dx.sizes()))
            refuse::shapes_do_not_match("jvp (primal and tangent)", x.sizes(), dx.sizes());
          return tensor::wrap(x, layer_.id, layer_.level, to(dx, x.dtype()), {}, x.sizes());
        },
        p, t);
  }
  template <class T>
  void give(T const& t) {
    detail::give_to(layer_.interpreter, t);
  }
  template <class Body>
  auto run(Body const& body) {
    pushed const on(this_thread_state.transforms, layer_);
    return body();
  }
  tensor primal(tensor const& y) const { return layer_.interpreter.mine(y) ? y.inner() : y; }
  template <class Y>
    requires std::is_same_v<Y, tensor>
  tensor tangent(Y const& y) const {
    if (!layer_.interpreter.mine(y)) return detail::constant_zeros(y);
    Y const& t = layer_.interpreter.fresh(y).extra();
    return t.defined() ? t : Y(detail::constant_zeros(Y(y.inner())));
  }
  /// True if the result has a tangent at this level.
  bool depends(tensor const& y) const {
    return layer_.interpreter.mine(y) && layer_.interpreter.fresh(y).extra().defined();
  }
  template <number Y>
  bool depends(Y) const {
    return false;
  }
  template <number Y>
  tensor primal(Y y) const {
    return detail::as_tensor(y);
  }
  template <number Y>
  tensor tangent(Y) const {
    return detail::as_tensor(Y(0));
  }

private:
  template <class V>
  static tensor boxed(V const& v) {
    return detail::as_tensor(detail::plain(v));
  }
  detail::interpreter_layer<jvp_interpreter<dynamic_level>> layer_;
};

/// One run of `vmap` on tensors.
template <class On = void>
class dynamic_batch_scope {
public:
  static constexpr bool on_tensors = true;
  explicit dynamic_batch_scope(extent n, random_policy random)
      : layer_(detail::vmap_kind<On>, this_thread_state.transforms) {
    layer_.interpreter.n = dims{n};
    layer_.interpreter.batch_size = n;
    layer_.interpreter.random = random;
  }
  dims size() const { return layer_.interpreter.n; }
  tensor map(tensor const& x) const {
    dims logical = x.sizes();
    return tensor::wrap(x, layer_.id, layer_.level, {}, {}, logical.erase(0));
  }
  template <class Body>
  auto run(Body const& body) {
    pushed const on(this_thread_state.transforms, layer_);
    return body();
  }
  bool mapped(tensor const& y) const { return layer_.interpreter.mine(y); }
  tensor unmapped(tensor const& y) const { return y.inner(); }

private:
  detail::interpreter_layer<vmap_interpreter<batch_level, dims>> layer_;
};

} // namespace varve
