// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/dynamic_level.hpp>
#include <varve/transform/closure.hpp>

namespace varve {

namespace detail {
/// A layer that runs interpreter `I` on boxed calls: the same `process` that static values use.
template <class I>
struct interpreter_layer : layer {
  I interpreter{};
  explicit interpreter_layer(layer_stack& stack) {
    kind = I::kind;
    interpreter.self = this;
    object = static_cast<dynamic_level*>(&interpreter);
    process = [](layer& l, boxed_op const& op, boxed_args const& x) -> tensor { return static_cast<interpreter_layer&>(l).interpreter.process(op, x); };
    pushed::name(*this, stack);
  }
  interpreter_layer(interpreter_layer const&) = delete;
  interpreter_layer& operator=(interpreter_layer const&) = delete;
};

inline void require_floating(tensor const& t, char const* transform) {
  if (is_floating(t.dtype())) return;
  std::string what(transform);
  what += " of a value that is not floating:"; // g++ 12 warns of the operator +
  refuse::dtype_is_not_supported(what.c_str(), name(t.dtype()));
}
} // namespace detail

/// One run of reverse mode on tensors: a layer of the thread's stack while the function runs, and its tape. The counterpart of `static_reverse_scope`.
/// (A template, like its siblings, only so that the header alone instantiates no operator.)
template <class = void>
class dynamic_reverse_scope {
public:
  dynamic_reverse_scope() : layer_(this_thread_state.transforms) {
    layer_.interpreter.record_on = &tape_;
    layer_.records = true;
  }

  template <class T>
  auto track(T const& t) {
    return tree_map(
        [&](auto const& v) {
          if constexpr (value<std::remove_cvref_t<decltype(v)>>) {
            tensor const x = detail::as_tensor(detail::plain(v));
            detail::require_floating(x, "grad");
            return tensor::wrap(x, layer_.id, layer_.level, {}, &tape_.make<detail::boxed_leaf>()->out, x.sizes());
          } else {
            return v;
          }
        },
        t);
  }
  template <class Body>
  auto run(Body const& body) {
    pushed const on(this_thread_state.transforms, layer_);
    return body();
  }
  template <class Y>
  auto primal(Y const& t) const {
    return tree_map(
        [&](auto const& y) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(y)>, tensor>) return mine(y) ? tensor(y.inner()) : y;
          else return y;
        },
        t);
  }
  template <class Y>
  void backward_from_scalar(Y const& y) {
    static_assert(value<Y>, "varve: grad: the function must return one scalar value");
    if constexpr (std::is_same_v<Y, tensor>) {
      if (y.dim() != 0) refuse::grad_of_a_function_that_does_not_return_a_scalar(y.sizes());
      detail::require_floating(y, "grad of a function");
      if (mine(y) && y.slot()) y.slot()->value = ones_like(y.inner());
      pull();
    }
  }
  template <class Y, class G>
  void backward(Y const& t, G const& g) {
    for (tape_node* n = tape_.last(); n; n = n->previous) n->act(n, tape_node::clear);
    tree_map(
        [&](auto const& y, auto const& c) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(y)>, tensor>) {
            tensor const cotangent = detail::as_tensor(c);
            if (!(cotangent.sizes() == y.sizes())) refuse::shapes_do_not_match("vjp (cotangent and result)", cotangent.sizes(), y.sizes());
            if (mine(y) && y.slot()) y.slot()->value = y.slot()->value.defined() ? add(y.slot()->value, cotangent) : cotangent;
          }
          return 0;
        },
        t, g);
    pull();
  }
  template <class T>
  auto gradient(T const& t) const {
    return tree_map(
        [&](auto const& v) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) {
            tensor const& c = v.slot()->value;
            return c.defined() ? c : tensor(zeros_like(v.inner()));
          } else {
            return none;
          }
        },
        t);
  }

  /// Adds to the cotangent of a result; `pull` then hands all of them back.
  template <class T = tensor>
  void seed(T const& y, T const& g) {
    if (mine(y) && y.slot()) y.slot()->value = y.slot()->value.defined() ? T(add(y.slot()->value, g)) : g;
  }
  void pull() {
    for (tape_node* n = tape_.last(); n; n = n->previous) n->act(n, tape_node::pull);
  }

private:
  bool mine(tensor const& y) const { return layer_.interpreter.mine(y); }
  tape_memory tape_;
  detail::interpreter_layer<grad_interpreter<dynamic_level>> layer_;
};

/// One run of forward mode on tensors.
template <class = void>
class dynamic_forward_scope {
public:
  dynamic_forward_scope() : layer_(this_thread_state.transforms) {}
  template <class P, class T>
  auto attach(P const& p, T const& t) const {
    return tree_map(
        [&](auto const& v, auto const& d) {
          auto const x = boxed(v);
          auto const dx = boxed(d);
          detail::require_floating(x, "jvp");
          if (!(x.sizes() == dx.sizes())) refuse::shapes_do_not_match("jvp (primal and tangent)", x.sizes(), dx.sizes());
          return tensor::wrap(x, layer_.id, layer_.level, to(dx, x.dtype()), nullptr, x.sizes());
        },
        p, t);
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
    return layer_.interpreter.mine(y) ? y.extra() : tensor(zeros_like(y));
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
template <class = void>
class dynamic_batch_scope {
public:
  explicit dynamic_batch_scope(index_t n, random_policy random) : layer_(this_thread_state.transforms) {
    layer_.interpreter.n = dims{n};
    layer_.batch_size = n;
    layer_.random = random;
  }
  dims size() const { return layer_.interpreter.n; }
  tensor map(tensor const& x) const {
    dims logical = x.sizes();
    return tensor::wrap(x, layer_.id, layer_.level, {}, nullptr, logical.erase(0));
  }
  template <class Body>
  auto run(Body const& body) {
    pushed const on(this_thread_state.transforms, layer_);
    return body();
  }
  bool mapped(tensor const& y) const { return layer_.interpreter.mine(y); }
  tensor unmapped(tensor const& y) const { return y.inner(); }

private:
  detail::interpreter_layer<vmap_interpreter<dynamic_level, dims>> layer_;
};

} // namespace varve
