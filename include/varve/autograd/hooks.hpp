// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/boxed_function.hpp>
#include <varve/interpreter/engine.hpp>

#include <memory>
#include <string>

namespace varve {

/// A hook of a tensor, called with its gradient. It may return a replacement. (Other hooks are called before and after
/// a node runs, and after a gradient was added to a leaf.)
using tensor_hook = shared_function<tensor(tensor const&)>;
/// A hook that is called with the gradients that a node is about to receive; it may change them.
using node_pre_hook = shared_function<void(boxed_args& grad_outputs)>;
/// A hook that is called with the gradients that a node returned, which it may change, and those that the node
/// received.
using node_post_hook = shared_function<void(boxed_args& grad_inputs, boxed_args const& grad_outputs)>;
/// A hook that is called with a leaf after its gradient was added to.
using leaf_hook = shared_function<void(tensor const& leaf)>;

namespace detail {
/// The hooks of one node, shared with the handles that remove them. (Unused templates here cost nothing.)
template <class T = tensor>
struct hook_list {
  struct of_tensor {
    std::uint64_t id;
    std::uint32_t nr;
    tensor_hook f;
  };
  template <class F>
  struct of_node {
    std::uint64_t id;
    F f;
  };
  std::uint64_t next = 1;
  std::vector<of_tensor> tensors;
  std::vector<of_node<node_pre_hook>> before;
  std::vector<of_node<node_post_hook>> after;
  std::vector<of_node<shared_function<void(grad_node&)>>> accumulated;

  void remove(std::uint64_t id) {
    auto const is = [id](auto const& h) { return h.id == id; };
    std::erase_if(tensors, is);
    std::erase_if(before, is);
    std::erase_if(after, is);
    std::erase_if(accumulated, is);
  }
};
/// Checks that a hook replaced a gradient only by one of the same shape and dtype.
inline void check_replacement(char const* who, tensor const& was, tensor const& now) {
  if (!now.defined() || now.is(was)) return;
  if (!was.defined())
    refuse::with<autograd_error>(
        (std::string("varve: ") + who + ": a gradient that did not arrive, which stands for zeros, cannot be replaced")
            .c_str());
  if (!(now.sizes() == was.sizes()))
    refuse::shapes_do_not_match((std::string(who) + " (its result and the gradient)").c_str(), now.sizes(),
                                was.sizes());
  if (now.dtype() != was.dtype())
    refuse::with<dtype_error>((std::string("varve: ") + who + ": a gradient of " + name(was.dtype()) +
                               " was replaced by one of " + name(now.dtype()))
                                  .c_str());
}
/// Checks the replacements made by a hook of a node, whose name appears in the message.
inline void check_replacements(char const* kind, grad_node const& n, boxed_args const& was, boxed_args const& now) {
  char text[64];
  n.type->name(n, text);
  std::string const who = std::string(kind) + " of " + text;
  if (was.size() != now.size())
    refuse::with<autograd_error>(("varve: " + who + ": the number of gradients was changed from " +
                                  std::to_string(was.size()) + " to " + std::to_string(now.size()))
                                     .c_str());
  for (int k = 0; k < was.size(); ++k) check_replacement(who.c_str(), was[k], now[k]);
}
/// The leaves of a program that is being traced on this thread. The program uses the same leaves when it runs.
struct leaves_of_program {
  /// True if hooks of the leaf run when the program runs, not while it is traced.
  virtual bool leaves_hooks(grad_node const& leaf) const = 0;
  /// Called before a gradient is added to a leaf; throws if the program would not repeat that.
  virtual void adding(grad_node const& leaf) const = 0;

protected:
  ~leaves_of_program() = default;
};
inline constinit thread_local leaves_of_program const* program_leaves = nullptr;
/// Data attached to a node when needed.
template <class T = tensor>
struct node_extra : grad_node_extra {
  std::shared_ptr<hook_list<T>> hooks = std::make_shared<hook_list<T>>();
  std::vector<T> retained; // by result
  std::vector<dependent<bool, T>> retains;
  std::vector<T> collected; // by result: sums of the backward passes that had it as an input
  std::string where;

  static node_extra& of(grad_node& n) {
    if (!n.extra) n.extra = new node_extra;
    return static_cast<node_extra&>(*n.extra);
  }
  void arrived(grad_node& n, boxed_args& g) override {
    if (program_leaves && n.type->is_leaf && program_leaves->leaves_hooks(n)) [[unlikely]]
      return;
    auto const list = hooks->tensors; // a hook may remove itself
    for (auto const& h : list) {
      tensor& at = g[static_cast<int>(h.nr)];
      if (!at.defined()) continue;
      tensor const r = h.f(at);
      if (!r.defined()) continue;
      check_replacement("tensor hook", at, r);
      at = r;
    }
    for (std::size_t k = 0; k < retains.size(); ++k)
      if (T const& now = g[static_cast<int>(k)]; retains[k] && now.defined())
        retained[k] = retained[k].defined() ? T(add(retained[k], now)) : T(clone(now)); // `now` may be the user's
  }
  void before(grad_node& n, boxed_args& g) override {
    auto const list = hooks->before;
    for (auto const& h : list) {
      boxed_args const was = g;
      h.f(g);
      check_replacements("prehook", n, was, g);
    }
  }
  void after(grad_node& n, boxed_args& out, boxed_args const& g) override {
    auto const done = hooks->accumulated;
    for (auto const& h : done) h.f(n);
    auto const list = hooks->after;
    for (auto const& h : list) {
      boxed_args const was = out;
      h.f(out, g);
      check_replacements("hook", n, was, out);
    }
  }
  void retain(std::uint32_t nr) {
    if (retains.size() <= nr) {
      retains.resize(nr + 1);
      retained.resize(nr + 1);
    }
    retains[nr] = true;
  }
  void collect(std::uint32_t nr, T const& g) {
    if (collected.size() <= nr) collected.resize(nr + 1);
    collected[nr] = collected[nr].defined() ? T(add(collected[nr], g)) : g;
  }
  bool release_retained(std::uint32_t nr) override {
    if (nr < collected.size()) collected[nr] = tensor();
    bool const was = nr < retains.size() && retains[nr];
    if (was) {
      retains[nr] = false;
      retained[nr] = tensor();
    }
    return was;
  }
  tensor const* retained_at(std::uint32_t nr) const override {
    if (nr < retains.size() && retains[nr]) return &retained[nr];
    return nr < collected.size() && collected[nr].defined() ? &collected[nr] : nullptr;
  }
  char const* call() const override { return where.c_str(); }
};
} // namespace detail

/// A handle that removes a hook. Removing it again has no effect. The handle may outlive the tensor.
class hook_handle {
public:
  hook_handle() = default;
  hook_handle(std::shared_ptr<detail::hook_list<>> const& list, std::uint64_t id) : list_(list), id_(id) {}
  template <class = void>
  void remove() {
    if (auto const l = list_.lock()) l->remove(id_);
    list_.reset();
  }

private:
  std::weak_ptr<detail::hook_list<>> list_;
  std::uint64_t id_ = 0;
};

namespace autograd {
/// A node of the graph for users (`torch.autograd.graph.Node`). It recorded a tensor or collects the gradient of a
/// leaf. Null if there is none.
class node {
public:
  node() = default;
  explicit node(grad_node* n) : keep_(n, 0) {}

  explicit operator bool() const { return static_cast<bool>(keep_); }
  /// Returns the name of the node, such as "MulBackward0", "AccumulateGrad" or "CopySlices".
  std::string name() const {
    char text[64];
    keep_.to()->type->name(*keep_.to(), text);
    return text;
  }
  /// Returns the number of the node in the order in which its thread recorded nodes.
  std::uint64_t sequence_nr() const { return keep_.to()->sequence; }
  /// Returns, for each operand, the node that its gradient goes to and the index of a result of that node. Nodes are
  /// null for constants.
  template <class N = node>
  std::vector<std::pair<N, int>> next_functions() const {
    std::vector<std::pair<N, int>> r;
    for (int k = 0; k < keep_.to()->count; ++k)
      r.push_back({node(keep_.to()->next[k].to()), static_cast<int>(keep_.to()->next[k].nr())});
    return r;
  }
  /// Returns the saved values as the backward pass will read them: checked for writes (`autograd_error`) and unpacked
  /// by the hooks that packed them.
  template <class T = tensor>
  std::vector<T> saved_tensors() const {
    std::vector<T> r;
    if (auto* const saved = keep_.to()->type->saved)
      for (auto const& t : saved(*keep_.to())) r.push_back(t);
    return r;
  }
  /// Registers a function that is called with the gradients of the node's results before the node runs. It may change
  /// them.
  template <class F>
  hook_handle register_prehook(F f) const {
    auto& l = detail::node_extra<dependent<tensor, F>>::of(*keep_.to()).hooks;
    l->before.push_back({l->next, node_pre_hook(std::move(f))});
    return {l, l->next++};
  }
  /// Registers a function that is called after the node ran, with the gradients of its operands, which it may change,
  /// and those of its results.
  template <class F>
  hook_handle register_hook(F f) const {
    auto& l = detail::node_extra<dependent<tensor, F>>::of(*keep_.to()).hooks;
    l->after.push_back({l->next, node_post_hook(std::move(f))});
    return {l, l->next++};
  }
  friend bool operator==(node const& a, node const& b) { return a.keep_.to() == b.keep_.to(); }
  grad_node* get() const { return keep_.to(); }

private:
  edge keep_;
};
/// A place in the graph where a gradient starts or arrives: a node and one of its results, without the tensor.
struct gradient_edge {
  autograd::node node;
  int output_nr = 0;
};
} // namespace autograd

} // namespace varve
